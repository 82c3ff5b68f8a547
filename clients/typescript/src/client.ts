import type { Run, RunEvent, StreamEvent } from "./events.js";
import { follow, type FollowOptions } from "./follow.js";
import { ApiError, backoff, pause } from "./problem.js";
import type { Json, LoopState } from "./wire.js";

/** Where the server is, and who asks. */
export interface ClientOptions {
  /** For instance `http://127.0.0.1:8080`. */
  baseUrl: string;
  /** Sent as `Authorization: Bearer …`. */
  token?: string;
  /** A secret of this client's own, at least 16 characters; runs started with it take tool results only from it. */
  session?: string;
  headers?: Record<string, string>;
  /** Another `fetch` than the global one. */
  fetch?: typeof fetch;
  /** Tries of a call that did not reach the server; each carries the same idempotency key. */
  tries?: number;
}

/** A run to start; see the server's `/openapi.json` for all fields. */
export interface NewRun {
  agent: string;
  message: string;
  payload?: Json;
  model?: string;
  limits?: Record<string, Json>;
  clientTools?: Array<Record<string, Json>>;
  planMode?: boolean;
  conversationId?: string;
  user?: string;
  tenant?: string;
  metadata?: Record<string, Json>;
}

/** A request: an `Ask`, or the data of `request.created`, whose revision and hash bind the answer to what was shown. */
export interface Asked {
  requestId: string | null;
  revision?: number;
  contentHash?: string;
}

/** A call of a client tool: the data of `client_tool.requested`, or an `Ask`. */
export interface Called {
  requestId: string | null;
  runId?: string;
  callId?: string;
}

/** The verbs of the HTTP API that a client needs. */
export class LoopAgent {
  readonly #options: ClientOptions;
  readonly #base: string;

  constructor(options: ClientOptions) {
    this.#options = options;
    this.#base = `${options.baseUrl.replace(/\/+$/, "").replace(/\/api\/v1$/, "")}/api/v1`;
  }

  /** Start a run. */
  start(run: NewRun, options: { waitSeconds?: number; signal?: AbortSignal } = {}): Promise<Run> {
    const query = options.waitSeconds === undefined ? "" : `?wait=${options.waitSeconds}`;
    return this.#post(`/runs${query}`, { ...run }, options.signal);
  }

  /** A run as it is now; with `waitSeconds`, once it has ended or asks somebody. */
  run(runId: string, options: { waitSeconds?: number; signal?: AbortSignal } = {}): Promise<Run> {
    const query = options.waitSeconds === undefined ? "" : `?wait=${options.waitSeconds}`;
    return this.#get(`${path(runId)}${query}`, options.signal);
  }

  /** What a run is doing, as the server says. */
  state(runId: string, signal?: AbortSignal): Promise<LoopState> {
    return this.#get(`${path(runId)}/state`, signal);
  }

  /** A page of a run's stored events. */
  async events(runId: string, after = 0, limit = 1000): Promise<RunEvent[]> {
    const page = await this.#get<{ events: RunEvent[] }>(`${path(runId)}/events?after=${after}&limit=${limit}`);
    return page.events;
  }

  /** The events of a run as they happen, until it has ended; each stored one once, across lost connections. */
  follow(runId: string, options: FollowOptions = {}): AsyncGenerator<StreamEvent, void, undefined> {
    const url = `${this.#base}${path(runId)}/stream`;
    return follow(
      (query, headers, signal) =>
        this.#fetch(url + query, { headers: { ...this.#headers(), ...headers }, signal, cache: "no-store" }),
      runId,
      options,
    );
  }

  /** Approve what is asked, exactly as it was shown. */
  approve(ask: Asked, feedback = ""): Promise<Run> {
    return this.#answer(ask, { decision: "approve", feedback });
  }

  /** Approve with changes: the parameters of an action, or the whole text of a plan. */
  edit(ask: Asked, edited: Json, feedback = ""): Promise<Run> {
    return this.#answer(ask, { decision: "approve", edited, feedback });
  }

  /** Reject, and say why. */
  reject(ask: Asked, feedback = ""): Promise<Run> {
    return this.#answer(ask, { decision: "reject", feedback });
  }

  /** Answer a question: with a text, or with the values of its form by question id. */
  answer(ask: Asked, answer: string | Record<string, Json>): Promise<Run> {
    const given = typeof answer === "string" ? { feedback: answer } : { values: answer };
    return this.#answer(ask, { decision: "answer", ...given });
  }

  /** Stop the run that asks. */
  terminate(ask: Asked, feedback = ""): Promise<Run> {
    return this.#answer(ask, { decision: "terminate", feedback });
  }

  /** Bring the result of a client tool. */
  toolResult(call: Called, result: Json): Promise<Run> {
    return this.#post(callPath(call), { success: true, result });
  }

  /** Say that a client tool could not be carried out. */
  toolError(call: Called, error: string): Promise<Run> {
    return this.#post(callPath(call), { success: false, error });
  }

  /** Say something to a run: it answers an open question, else it waits for a turn boundary, or steers. */
  message(runId: string, text: string, delivery: "queue" | "steer" = "queue"): Promise<Run> {
    return this.#post(`${path(runId)}/messages`, { text, delivery });
  }

  /** Stop a run and everything it is doing. */
  cancel(runId: string, reason = ""): Promise<Run> {
    return this.#post(`${path(runId)}/cancel`, { reason });
  }

  /** Let a run go on that stands still. */
  resume(runId: string): Promise<Run> {
    return this.#post(`${path(runId)}/resume`, undefined);
  }

  #answer(ask: Asked, decision: Record<string, Json>): Promise<Run> {
    const { requestId, revision, contentHash } = ask;
    if (requestId === null) throw new TypeError("This is no open request: it is forming, or the run stands still.");
    const seen = { ...(revision === undefined ? {} : { revision }), ...(contentHash ? { contentHash } : {}) };
    return this.#post(`/requests/${encodeURIComponent(requestId)}/answer`, { ...decision, ...seen });
  }

  async #get<T>(where: string, signal?: AbortSignal): Promise<T> {
    return this.#call<T>(where, { method: "GET", headers: this.#headers(), signal: signal ?? null });
  }

  async #post<T>(where: string, body: object | undefined, signal?: AbortSignal): Promise<T> {
    const headers: Record<string, string> = { ...this.#headers(), "Idempotency-Key": crypto.randomUUID() };
    if (body !== undefined) headers["Content-Type"] = "application/json";
    const sent = body === undefined ? null : JSON.stringify(body);
    return this.#call<T>(where, { method: "POST", headers, body: sent, signal: signal ?? null });
  }

  /** One call, tried again when the server was not reached; the key sees to it that it counts once. */
  async #call<T>(where: string, request: RequestInit): Promise<T> {
    const most = this.#options.tries ?? 3;
    for (let tries = 1; ; tries += 1) {
      try {
        const response = await this.#fetch(this.#base + where, request);
        if (response.ok) return (await response.json()) as T;
        throw await ApiError.of(response);
      } catch (error) {
        const refused = error instanceof ApiError && !(error.status === 503 && error.retryable);
        if (refused || request.signal?.aborted || tries >= most) throw error;
        const wished = error instanceof ApiError ? error.retryAfterMs : null;
        await pause(wished ?? backoff(tries, 100, 2_000), request.signal ?? undefined);
      }
    }
  }

  #fetch(url: string, request: RequestInit): Promise<Response> {
    return (this.#options.fetch ?? fetch)(url, request);
  }

  #headers(): Record<string, string> {
    const { token, session, headers } = this.#options;
    return {
      ...headers,
      ...(token ? { Authorization: `Bearer ${token}` } : {}),
      ...(session ? { "Client-Session": session } : {}),
    };
  }
}

function path(runId: string): string {
  return `/runs/${encodeURIComponent(runId)}`;
}

/** A request's id is its run's id, a colon, and the id of the call. */
function callPath(call: Called): string {
  const requestId = call.requestId ?? "";
  const cut = requestId.indexOf(":");
  const runId = call.runId ?? requestId.slice(0, cut);
  const callId = call.callId ?? requestId.slice(cut + 1);
  if (!runId || !callId) throw new TypeError("This is no open call of a client tool.");
  return `${path(runId)}/client-tools/${encodeURIComponent(callId)}`;
}
