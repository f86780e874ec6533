// Asks the API again and again: never twice at once, not while nobody looks, seldom while the
// server is away.

const LONGEST_WAIT_SECONDS = 15;

export class NotFound extends Error {}

// The answer to a relative address, so that the page also works below another path.
export async function ask(address, signal) {
  const response = await fetch(address, {signal, cache: "no-store"}).catch((error) => {
    throw error instanceof TypeError ? new Error("the server cannot be reached") : error;
  });
  if (response.ok) return response.json();
  const {error} = await response.json().catch(() => ({}));
  if (response.status === 404) throw new NotFound(error ?? "Not found.");
  throw new Error(error ?? `the answer was ${response.status} ${response.statusText}`.trim());
}

// `work(signal)` asks once and shows the answer; `told(error or null, waitSeconds)` hears how it went.
export class Poller {
  constructor(everySeconds, work, told) {
    this.everySeconds = everySeconds;
    this.work = work;
    this.told = told;
    this.failures = 0;
    this.timer = null;
    this.running = null;
    document.addEventListener("visibilitychange", () => {
      if (this.isStarted) this.now();
    });
  }

  start() {
    this.isStarted = true;
    this.now();
  }

  stop() {
    this.isStarted = false;
    clearTimeout(this.timer);
    this.running?.abort();
    this.running = null;
  }

  // Sooner than planned, unless an answer is under way.
  async now() {
    clearTimeout(this.timer);
    if (this.running || !this.isStarted || document.visibilityState === "hidden") return;
    const asking = new AbortController();
    const tooLong = setTimeout(() => asking.abort(new Error("no answer within 10 s")), 10_000);
    this.running = asking;
    let failure = null;
    try {
      await this.work(asking.signal);
    } catch (error) {
      failure = error;
    }
    clearTimeout(tooLong);
    if (this.running !== asking) return; // stopped meanwhile
    this.running = null;
    this.failures = failure ? this.failures + 1 : 0;
    const waitSeconds = failure ? Math.min(2 ** (this.failures - 1), LONGEST_WAIT_SECONDS) : this.everySeconds;
    this.told(failure, waitSeconds);
    this.timer = setTimeout(() => this.now(), 1000 * waitSeconds);
  }
}
