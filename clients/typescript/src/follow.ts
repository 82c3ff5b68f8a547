import type { StreamEvent, StreamReset } from "./events.js";
import { ApiError, backoff, pause } from "./problem.js";
import { SseParser, type Message } from "./sse.js";

/** How to follow a run. */
export interface FollowOptions {
  /** Number of the last event that is known; 0, the default, is everything from the start. */
  after?: number;
  /** Ends the iteration, quietly. */
  signal?: AbortSignal;
  /** How a reconnecting client says where it stands; `Last-Event-ID` needs a preflight across origins. */
  resumeBy?: "after" | "Last-Event-ID";
  /** First wait before a reconnect, in milliseconds; doubled for each try that brings nothing. */
  minDelayMs?: number;
  /** Longest wait before a reconnect, in milliseconds. */
  maxDelayMs?: number;
  /** Reconnect when nothing has come for so long, in milliseconds; the server says something every 15 s. */
  silenceMs?: number;
  /** Tries in a row that bring nothing before the last error is thrown; no limit by default. */
  maxTries?: number;
  /** Hears of every lost connection. */
  onReconnect?: (info: { after: number; tries: number; delayMs: number; cause: unknown }) => void;
}

/** Opens one connection. */
export type Connect = (query: string, headers: Record<string, string>, signal: AbortSignal) => Promise<Response>;

const TERMINAL: ReadonlySet<string> = new Set(["run.completed", "run.failed", "run.cancelled"]);
/** Types of events that say whether the run has ended. */
const GOES_ON: ReadonlySet<string> = new Set([...TERMINAL, "run.resumed"]);

/** Where a reader stands, and what it has heard. */
class Position {
  /** Nothing more will come. */
  over = false;
  /** The run has ended. Runs below it may still tell how they ended, and somebody may let it go on. */
  ended = false;
  heard = 0;
  readonly #calls = new Set<string>();

  constructor(
    readonly runId: string,
    public after: number,
  ) {}

  /** The event of a message, unless it was heard before. */
  take(message: Message): StreamEvent | null {
    const event = JSON.parse(message.data) as StreamEvent;
    this.heard += 1;
    if (event.type === "stream.reset") return this.#reset(event);
    if (event.seq === undefined) return event;
    const call = event.type === "client_tool.requested" ? event.data.requestId : null;
    const again = message.id === null; // sent once more, beside the order
    if (again ? call === null || this.#calls.has(call) : event.seq <= this.after) return null;
    if (call !== null) this.#calls.add(call);
    if (!again) this.after = event.seq;
    if (event.runId === this.runId && GOES_ON.has(event.type)) this.ended = TERMINAL.has(event.type);
    return event;
  }

  #reset(event: StreamReset): StreamReset {
    this.after = event.after;
    this.#calls.clear();
    this.ended = event.run.status !== "running";
    this.over = this.ended && event.after >= event.run.seq;
    return event;
  }
}

/**
 * The events of a run: each stored one once and in order, across lost connections, until the run has ended.
 *
 * Throws `ApiError` for what trying again cannot mend.
 */
export async function* follow(
  connect: Connect,
  runId: string,
  options: FollowOptions = {},
): AsyncGenerator<StreamEvent, void, undefined> {
  const position = new Position(runId, options.after ?? 0);
  const { signal, minDelayMs = 250, maxDelayMs = 15_000, maxTries = Number.POSITIVE_INFINITY } = options;
  let tries = 0;
  while (!signal?.aborted) {
    const before = position.heard;
    let cause: unknown = null;
    try {
      yield* connection(connect, position, options);
    } catch (error) {
      if (signal?.aborted) return;
      if (error instanceof ApiError && !error.retryable) throw error;
      cause = error;
    }
    if (position.over || signal?.aborted) return;
    tries = position.heard > before ? 0 : tries + 1;
    if (tries >= maxTries) throw cause ?? new Error(`The stream of run ${runId} ends again and again.`);
    const wished = cause instanceof ApiError ? cause.retryAfterMs : null;
    const delayMs = wished ?? backoff(tries, minDelayMs, maxDelayMs);
    options.onReconnect?.({ after: position.after, tries, delayMs, cause });
    await pause(delayMs, signal);
  }
}

/** The events of one connection, until it ends. */
async function* connection(
  connect: Connect,
  position: Position,
  options: FollowOptions,
): AsyncGenerator<StreamEvent, void, undefined> {
  const silence = new Silence(options.silenceMs ?? 45_000, options.signal);
  const byHeader = options.resumeBy === "Last-Event-ID" && position.after > 0;
  const headers = { Accept: "text/event-stream", ...(byHeader ? { "Last-Event-ID": String(position.after) } : {}) };
  try {
    const response = await connect(byHeader ? "" : `?after=${position.after}`, headers, silence.signal);
    if (!response.ok) throw await ApiError.of(response);
    if (response.status === 204) return void (position.over = true); // it has ended, and all was told
    if (!response.body) throw new Error("The server answered without a body.");
    for await (const message of messages(response.body, silence)) {
      const event = position.take(message);
      if (event) yield event;
      if (position.over) return;
    }
    position.over = position.ended; // the server ends the stream when all has been told
  } finally {
    silence.end();
  }
}

async function* messages(body: ReadableStream<Uint8Array>, silence: Silence): AsyncGenerator<Message> {
  const [reader, decoder, parser] = [body.getReader(), new TextDecoder(), new SseParser()];
  try {
    for (;;) {
      silence.wait();
      const { done, value } = await reader.read();
      silence.pause(); // what is done with the events takes as long as it takes
      if (done) return;
      yield* parser.feed(decoder.decode(value, { stream: true }));
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

/** Breaks a connection off on which nothing comes, or when the caller wants it. */
class Silence {
  readonly #controller = new AbortController();
  #timer: ReturnType<typeof setTimeout> | undefined;
  readonly #abort = (): void => this.#controller.abort();

  constructor(
    readonly milliseconds: number,
    readonly outer?: AbortSignal,
  ) {
    outer?.addEventListener("abort", this.#abort);
    this.wait();
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  wait(): void {
    this.pause();
    this.#timer = setTimeout(this.#abort, this.milliseconds);
  }

  pause(): void {
    clearTimeout(this.#timer);
  }

  end(): void {
    this.pause();
    this.outer?.removeEventListener("abort", this.#abort);
    this.#controller.abort();
  }
}
