"""What others ask of us: one HTTP(S) server with health and metrics, put together by app."""
