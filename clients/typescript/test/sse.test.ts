import assert from "node:assert/strict";
import { test } from "node:test";
import { SseParser, type Message } from "../src/index.js";

const STREAM =
  "\uFEFF: hello\n\nid: 1\nevent: run.started\ndata: {\"a\":1}\n\ndata: one\ndata: two\r\n\r\nevent: x\rdata:  y\r\r" +
  "id: 3\n\nnothing: known\ndata\n\nid: a\0b\ndata: ü😀\n\ndata: cut off";
const WANTED: Message[] = [
  { id: "1", event: "run.started", data: '{"a":1}' },
  { id: null, event: "message", data: "one\ntwo" },
  { id: null, event: "x", data: " y" },
  { id: null, event: "message", data: "" },
  { id: null, event: "message", data: "ü😀" },
];

test("a whole stream", () => assert.deepEqual(new SseParser().feed(STREAM), WANTED));

test("cut anywhere into two or into single units, it is the same", () => {
  for (let cut = 0; cut <= STREAM.length; cut += 1) {
    const parser = new SseParser();
    assert.deepEqual([...parser.feed(STREAM.slice(0, cut)), ...parser.feed(STREAM.slice(cut))], WANTED, `at ${cut}`);
  }
  const parser = new SseParser();
  assert.deepEqual(STREAM.split("").flatMap((one) => parser.feed(one)), WANTED);
});
