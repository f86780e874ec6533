# Lowtide for amd64 and arm64: `make build-image`. Nothing in it is written to, and no shell is needed.
FROM python:3.11-slim AS build
WORKDIR /build
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src src
RUN python -m venv --without-pip /opt/lowtide \
 && pip --python /opt/lowtide/bin/python install --no-cache-dir --constraint constraints.txt . \
 && python -m compileall -q /opt/lowtide

FROM python:3.11-slim
COPY --from=build /opt/lowtide /opt/lowtide
ENV PATH=/opt/lowtide/bin:/usr/local/bin:/usr/bin:/bin \
    PYTHONDONTWRITEBYTECODE=1
USER 65532:65532
EXPOSE 10259 8001
CMD ["lowtide", "scheduler", "--config=/etc/kubernetes/scheduler-config.yaml"]
