import type { Json } from "./wire.js";

/** What the server refuses, as it says it (RFC 9457). */
export class ApiError extends Error {
  override readonly name = "ApiError";
  /** HTTP status: 409 decided already or stale, 410 expired, 422 does not fit. */
  readonly status: number;
  /** A stable word. */
  readonly code: string;
  readonly retryable: boolean;
  /** The whole problem. */
  readonly problem: Record<string, Json>;
  /** When to try again, as the server wishes, in milliseconds. */
  readonly retryAfterMs: number | null;

  constructor(status: number, problem: Record<string, Json>, retryAfterMs: number | null = null) {
    super(String(problem["detail"] ?? problem["title"] ?? `HTTP ${status}`));
    this.status = status;
    this.code = typeof problem["code"] === "string" ? problem["code"] : "";
    this.retryable = problem["retryable"] === true || [408, 425, 429].includes(status) || status >= 500;
    this.problem = problem;
    this.retryAfterMs = retryAfterMs;
  }

  /** The error that a response tells of. */
  static async of(response: Response): Promise<ApiError> {
    const body: unknown = await response.json().catch(() => ({}));
    const problem = typeof body === "object" && body !== null && !Array.isArray(body) ? body : {};
    const seconds = Number(response.headers.get("retry-after") ?? Number.NaN);
    const wait = Number.isFinite(seconds) && seconds >= 0 ? seconds * 1000 : null;
    return new ApiError(response.status, problem as Record<string, Json>, wait);
  }
}

/** Waits, unless it is called off; then it ends at once. */
export async function pause(milliseconds: number, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted) return;
  await new Promise<void>((resolve) => {
    const end = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, milliseconds);
    signal?.addEventListener("abort", end);
  });
}

/** How long to wait before a try: doubled each time, up to a limit, with chance so that clients spread. */
export function backoff(tries: number, firstMs: number, mostMs: number): number {
  const full = Math.min(mostMs, firstMs * 2 ** Math.min(tries, 30));
  return full / 2 + (Math.random() * full) / 2;
}
