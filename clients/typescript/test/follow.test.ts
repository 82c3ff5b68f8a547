import assert from "node:assert/strict";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { ApiError, LoopAgent, ReplyText, type FollowOptions, type StreamEvent } from "../src/index.js";

type Handler = (request: IncomingMessage, response: ServerResponse, count: number) => void;
const FAST: FollowOptions = { minDelayMs: 1, maxDelayMs: 5 };

/** A server of which each request is answered by hand. */
async function serving<T>(handler: Handler, use: (client: LoopAgent, urls: string[]) => Promise<T>): Promise<T> {
  const urls: string[] = [];
  const server = createServer((request, response) => {
    urls.push(`${request.url} ${request.headers["last-event-id"] ?? ""}`.trim());
    handler(request, response, urls.length);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  try {
    return await use(new LoopAgent({ baseUrl: `http://127.0.0.1:${port}/` }), urls);
  } finally {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
}

function frame(seq: number | null, type: string, more: object = {}, id = seq): string {
  const event = { ...(seq === null ? {} : { seq, rootRunId: "r" }), runId: "r", type, data: {}, ...more };
  return `${id === null ? "" : `id: ${id}\n`}event: ${type}\ndata: ${JSON.stringify(event)}\n\n`;
}

const STREAM = { "Content-Type": "text/event-stream" };
const LAST = frame(4, "run.completed");

async function all(events: AsyncIterable<StreamEvent>): Promise<Array<[string, number | undefined]>> {
  const found: Array<[string, number | undefined]> = [];
  for await (const one of events) found.push([one.type, "seq" in one ? one.seq : undefined]);
  return found;
}

test("a lost connection is taken up where it broke, nothing lost or doubled", async () => {
  const events = [frame(1, "run.created"), frame(2, "run.started"), frame(3, "turn.started"), LAST];
  const handler: Handler = (_, response, count) => {
    response.writeHead(200, STREAM);
    if (count === 1) response.write(events[0] + events[1]!, () => response.destroy());
    else if (count === 2) response.end(events[1]! + events[2] + "id: 4\nevent: run.comp"); // again, and cut off
    else response.end(events[3]);
  };
  await serving(handler, async (client, urls) => {
    const lost: number[] = [];
    const found = await all(client.follow("r", { ...FAST, onReconnect: ({ after }) => lost.push(after) }));
    assert.deepEqual(found.map(([, seq]) => seq), [1, 2, 3, 4]);
    assert.deepEqual(urls, [0, 2, 3].map((after) => `/api/v1/runs/r/stream?after=${after}`));
    assert.deepEqual(lost, [2, 3]);
  });
});

test("it can say where it stands by Last-Event-ID", async () => {
  const handler: Handler = (_, response) => response.writeHead(200, STREAM).end(LAST);
  await serving(handler, async (client, urls) => {
    await all(client.follow("r", { after: 3, resumeBy: "Last-Event-ID" }));
    assert.deepEqual(urls, ["/api/v1/runs/r/stream 3"]);
  });
});

test("events without a number pass, and move nothing", async () => {
  const handler: Handler = (_, response, count) => {
    response.writeHead(200, STREAM);
    if (count === 1) response.end(frame(1, "turn.started") + frame(null, "reply.delta") + frame(null, "run.idle"));
    else response.end(LAST);
  };
  await serving(handler, async (client, urls) => {
    const found = await all(client.follow("r", FAST));
    assert.deepEqual(found.map(([type]) => type), ["turn.started", "reply.delta", "run.idle", "run.completed"]);
    assert.deepEqual(urls[1], "/api/v1/runs/r/stream?after=1");
  });
});

test("an open call of a client tool that is sent again is passed once", async () => {
  const call = { data: { requestId: "r:1:tool.0", callId: "1:tool.0" } };
  const handler: Handler = (_, response, count) => {
    response.writeHead(200, STREAM);
    if (count === 1) response.end(frame(2, "client_tool.requested", call, null) + frame(3, "run.state"));
    else response.end(frame(2, "client_tool.requested", call, null) + LAST);
  };
  await serving(handler, async (client) => {
    const found = await all(client.follow("r", { ...FAST, after: 2 }));
    assert.deepEqual(found.map(([type]) => type), ["client_tool.requested", "run.state", "run.completed"]);
  });
});

test("stream.reset: it goes on from the position that the server names", async () => {
  const run = { id: "r", status: "running", seq: 9 };
  const reset = `event: stream.reset\ndata: ${JSON.stringify({ type: "stream.reset", runId: "r", after: 2, run })}\n\n`;
  const handler: Handler = (_, response, count) => {
    response.writeHead(200, STREAM);
    response.end(count === 1 ? reset + frame(3, "turn.started") : LAST);
  };
  await serving(handler, async (client, urls) => {
    const found = await all(client.follow("r", { ...FAST, after: 77 }));
    assert.deepEqual(found.map(([type]) => type), ["stream.reset", "turn.started", "run.completed"]);
    assert.deepEqual(urls, [77, 3].map((after) => `/api/v1/runs/r/stream?after=${after}`));
  });
});

test("stream.reset of an ended run whose log is gone ends it", async () => {
  const run = { id: "r", status: "completed", seq: 9 };
  const reset = `data: ${JSON.stringify({ type: "stream.reset", runId: "r", after: 9, run })}\n\n`;
  await serving((_, response) => response.writeHead(200, STREAM).end(reset), async (client) => {
    assert.deepEqual(await all(client.follow("r", FAST)), [["stream.reset", undefined]]);
  });
});

test("the end of a child is not the end of the run", async () => {
  const handler: Handler = (_, response) =>
    response.writeHead(200, STREAM).end(frame(1, "run.completed", { runId: "r.1.sub.0" }) + LAST);
  await serving(handler, async (client) => {
    assert.deepEqual((await all(client.follow("r", FAST))).map(([, seq]) => seq), [1, 4]);
  });
});

test("what trying again cannot mend is thrown at once, with the server's words", async () => {
  const problem = { title: "Not found", detail: "There is no run 'r'.", code: "unknown_run", status: 404 };
  const handler: Handler = (_, response) => response.writeHead(404).end(JSON.stringify(problem));
  await serving(handler, async (client, urls) => {
    await assert.rejects(all(client.follow("r", FAST)), (error) => error instanceof ApiError && error.code === "unknown_run");
    assert.equal(urls.length, 1);
  });
});

test("a server that is away is tried again, up to a limit", async () => {
  const handler: Handler = (_, response, count) =>
    count < 3 ? response.writeHead(503, { "Retry-After": "0" }).end("{}") : response.writeHead(200, STREAM).end(LAST);
  await serving(handler, async (client, urls) => {
    assert.equal((await all(client.follow("r", FAST))).length, 1);
    assert.equal(urls.length, 3);
  });
  await serving((_, response) => response.writeHead(502).end(), async (client, urls) => {
    await assert.rejects(all(client.follow("r", { ...FAST, maxTries: 2 })), ApiError);
    assert.equal(urls.length, 2);
  });
});

test("a connection on which nothing comes is given up", async () => {
  const handler: Handler = (_, response, count) => {
    response.writeHead(200, STREAM);
    if (count === 1) response.write(frame(1, "run.created"));
    else response.end(LAST);
  };
  await serving(handler, async (client, urls) => {
    assert.equal((await all(client.follow("r", { ...FAST, silenceMs: 200 }))).length, 2);
    assert.equal(urls.length, 2);
  });
});

test("abort ends it quietly, also while it waits to reconnect", async () => {
  for (const status of [200, 503]) {
    const handler: Handler = (_, response) => {
      response.writeHead(status, STREAM);
      if (status === 200) response.write(frame(1, "run.created"));
      else response.end("{}");
    };
    await serving(handler, async (client) => {
      const controller = new AbortController();
      setTimeout(() => controller.abort(), 100);
      const found = await all(client.follow("r", { signal: controller.signal, minDelayMs: 60_000, maxDelayMs: 60_000 }));
      assert.equal(found.length, status === 200 ? 1 : 0);
    });
  }
});

test("leaving the loop closes the connection", async () => {
  let closed: () => void = () => undefined;
  const gone = new Promise<void>((resolve) => (closed = resolve));
  const handler: Handler = (request, response) => {
    request.on("close", closed);
    response.writeHead(200, STREAM).write(frame(1, "run.created"));
  };
  await serving(handler, async (client) => {
    for await (const _ of client.follow("r")) break;
    await gone;
  });
});

test("a call that did not reach the server is made again under the same key", async () => {
  const keys: unknown[] = [];
  const handler: Handler = (request, response, count) => {
    keys.push(request.headers["idempotency-key"]);
    if (count === 1) request.socket.destroy();
    else response.writeHead(200).end(JSON.stringify({ id: "r" }));
  };
  await serving(handler, async (client) => {
    assert.equal((await client.approve({ requestId: "r:1:act.0.ask" })).id, "r");
    assert.equal(keys.length, 2);
    assert.equal(keys[0], keys[1]);
  });
});

test("a refusal is not tried again", async () => {
  const handler: Handler = (_, response) => response.writeHead(409).end(JSON.stringify({ code: "already_resolved" }));
  await serving(handler, async (client, urls) => {
    await assert.rejects(client.reject({ requestId: "r:1:plan" }, "No."), (error) => error instanceof ApiError && error.status === 409);
    assert.equal(urls.length, 1);
  });
});

test("what is forming cannot be answered", () => {
  const client = new LoopAgent({ baseUrl: "http://127.0.0.1:1" });
  assert.throws(() => client.approve({ requestId: null }), TypeError);
  assert.throws(() => client.toolResult({ requestId: null }, 1), TypeError);
});

test("the text of a reply: pieces, snapshot, retraction, another attempt", () => {
  const reply = new ReplyText("r");
  const piece = (type: string, data: object, runId = "r"): boolean => reply.add({ type, runId, data } as unknown as StreamEvent);
  piece("reply.delta", { field: "message", text: "Good", attempt: 1 });
  piece("reply.delta", { field: "message", text: " day", attempt: 1 });
  piece("reply.delta", { field: "message", text: "x", attempt: 1 }, "other");
  assert.equal(reply.message, "Good day");
  piece("reply.snapshot", { attempt: 1, fields: [{ field: "message", text: "Good day, " }, { field: "reasoning", text: "So" }] });
  piece("reply.delta", { field: "message", text: "Ann", attempt: 1 });
  assert.deepEqual([reply.message, reply.fields.get("reasoning")], ["Good day, Ann", "So"]);
  piece("reply.delta", { field: "message", text: "Again", attempt: 2 });
  assert.equal(reply.message, "Again");
  assert.equal(piece("reply.delta", { field: "message", text: "late", attempt: 1 }), false);
  piece("reply.retracted", { fields: ["message"] });
  assert.equal(reply.message, "");
  piece("reply.delta", { field: "message", text: "B", attempt: 2 });
  piece("turn.started", {});
  assert.equal(reply.message, "");
});
