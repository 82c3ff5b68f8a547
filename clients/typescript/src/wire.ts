// Written by scripts/generate.mjs from schemas/event.json and schemas/loop_state.json.

/** Any JSON value. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/** An open request, complete enough to draw its buttons. */
export interface Ask {
  /** Null while the reply that asks is still arriving, and where a run stands still and nobody is asked. */
  requestId: string | null;
  /** The run that asks: the one looked at, or one below it. */
  runId: string;
  /** Who asks: the agents from the root run to the one that asks. */
  agents: Array<string>;
  /** `approval`, `plan`, `guard`, `limit`, `question`, `client_tool`; where a run stands still `resume`, `raise`, `retry`. */
  kind: string;
  title: string;
  primary: Button;
  secondary: Button;
  /** False while anything of it is still being made, and once an answer is on its way: show it, but take none. */
  enabled: boolean;
  /** When nobody can answer any more, seconds since the epoch. */
  expiresAt: number | null;
}

/** One thing that may be done. */
export interface Button {
  /** What it does: the `decision` of an answer, or one of `DOES`. */
  decision: string;
  /** What to write on it. */
  label: string;
}

/** What a run is doing. */
export interface LoopState {
  state: "queued" | "running" | "streaming" | "interactive" | "followup" | "client_tool" | "idle" | "resumable";
  /** Why it is idle: `completed`, `cancelled`, or why it failed (`limit`, `model`, …); null when there is no run. Why it is resumable: `paused`, or `unattended` where nobody works on it. */
  reason: string | null;
  /** The first open request of the run and the runs below it, or how a run that stands still may go on. */
  ask: Ask | null;
  /** What there is to do first: of a waiting run, the first button of its request. */
  primary: Button | null;
  secondary: Button | null;
}

/** A call ended, well or badly. */
export interface ActionCompleted {
  callId: string;
  action: string;
  ok: boolean;
  result?: Json;
  error?: Record<string, Json> | null;
  durationMs?: number;
  attempts?: number;
  skill?: string | null;
  /** How long before the reply was complete it had begun; that much of it was not waited for. */
  startedEarlyMs?: number | null;
}

/** A call that only reads began while the reply arrived, and is not what the reply asks for in the end. */
export interface ActionDiscarded {
  /** The place where it stood in the reply; the call that the reply asks for there may have the same id. */
  callId: string;
  action: string;
  params: Record<string, Json>;
  /** `waits`: the reply asks for it, but first a person is asked; it is made when they have answered. */
  reason: "refused" | "truncated" | "retry" | "changed" | "not_asked" | "waits" | "interrupted";
  /** How long it had run when it was cancelled, or ran until it ended. */
  runningMs?: number;
}

/** An action says how far it is. */
export interface ActionProgress {
  callId: string;
  text: string;
}

/** A call was not made: refused by a person, by policy, by a limit or by the circuit breaker. */
export interface ActionRejected {
  callId: string;
  action: string;
  reason: string;
  code: string;
  skill?: string | null;
}

/** A call was handed to its action. */
export interface ActionStarted {
  callId: string;
  action: string;
  params: Record<string, Json>;
  /** The skill that brought the action; absent when the agent has it by itself. */
  skill?: string | null;
}

/** What was remembered does not hold any more. */
export interface ApprovalForgotten {
  approvalId: string;
  action: string;
  by: string;
}

/** The very same call needs no approval from now on, or under a plan no call of an action that reads. */
export interface ApprovalRemembered {
  approvalId: string;
  action: string;
  params: Record<string, Json>;
  /** For the run, or for its conversation as well. */
  scope: "run" | "session";
  by: string;
  /** For all calls of the action, whatever their parameters, while this revision of the plan is the approved one. */
  plan?: number | null;
}

/** A call of an action whose calls a person approves is made without asking. */
export interface ApprovalWaived {
  callId: string;
  action: string;
  /** Its condition does not hold for this call, or a person does not want to be asked about it. */
  rule: "when" | "remembered";
  text: string;
  /** What was remembered. */
  approvalId?: string | null;
}

/** A result was too long for the prompt and is kept in full under a handle. */
export interface ArtifactCreated {
  handle: string;
  artifactId: string;
  callId: string;
  /** Length as text; of an image or file, its size in bytes. */
  chars: number;
  /** Of an image or file. */
  mediaType?: string | null;
  /** Which tools fit it. */
  kind?: string | null;
  /** Its name, if it has one. */
  name?: string | null;
  /** Which one of that name. */
  version?: number | null;
}

/** The model looked into an artifact. */
export interface ArtifactRead {
  /** As the model named it. */
  handle: string;
  tool: string;
  ok: boolean;
  /** Why not, as `{code, message}`. */
  error?: Record<string, Json> | null;
}

/** A call of a client tool is over: answered, timed out, taken back, or never put. */
export interface ClientToolCompleted {
  callId: string;
  requestId: string;
  tool: string;
  status: "answered" | "timed_out" | "cancelled" | "rejected";
  /** Whether the client carried it out and brought a result. */
  ok: boolean;
  result?: Json;
  error?: Record<string, Json> | null;
  /** Images and files of the result, each by its artifact id. */
  media?: Array<Record<string, Json>>;
}

/** The client is asked to carry out a call and to answer it by its id. */
export interface ClientToolRequested {
  /** Id of the call in its run, for `POST /runs/{runId}/client-tools/{callId}`. */
  callId: string;
  /** Id of the same among all requests. */
  requestId: string;
  kind?: "client_tool";
  title: string;
  tool: string;
  /** Checked against the tool's schema, with defaults filled in. */
  params: Record<string, Json>;
  /** What the call does, in the model's words or the tool's. */
  text?: string;
  /** What a result must satisfy; null takes any JSON. */
  resultSchema?: Record<string, Json> | null;
  timeoutMs: number;
  /** When the wait is over, seconds since the epoch; a later answer is refused. */
  expiresAt: number;
  /** Who asks: the agents from the root run to the one that asks. */
  agents?: Array<string>;
  /** The button that comes first, `{decision, label}`. */
  primary?: Record<string, string>;
  secondary?: Record<string, string>;
}

/** The client is told to do something, or may offer it to the person. */
export interface CommandIssued {
  command: Record<string, Json>;
  automatic: boolean;
}

/** Room was made in what the model sees; the messages themselves stay as they are. */
export interface ContextCompacted {
  /** Results had become old or were replaced by later ones, the model's window was nearly full, or the model refused the prompt as too long. */
  reason: "lifetime" | "superseded" | "window" | "overflow";
  /** Results are shown as stubs, or a summary stands for whole turns. */
  how: "stubs" | "summary";
  /** Messages up to this number are concerned. */
  upTo: number;
  /** How many of them are shown differently now. */
  messages: number;
  /** How much shorter the prompt gets, about. */
  freedBytes: number;
  /** Size of the next prompt, about. */
  tokens: number;
  /** The longest prompt that the model takes, as far as is known. */
  windowTokens: number;
}

/** The model was shown an earlier message in full. */
export interface ContextExpanded {
  /** Stable number of the message. */
  number: number;
  /** Its length, in characters. */
  chars: number;
}

/** The model looked something up in the conversation. */
export interface ConversationRead {
  tool: string;
  ok: boolean;
  /** Why not, as `{code, message}`. */
  error?: Record<string, Json> | null;
}

/** A limit was reached. */
export interface GuardLimit {
  limit: string;
  value: number;
  maximum: number;
}

/** Several turns in a row went wrong. */
export interface GuardMistake {
  count: number;
}

/** The model was reminded to go on or to finish. */
export interface GuardNudged {
  reason: string;
}

/** The model asks for the same step again and again. */
export interface GuardRepeated {
  count: number;
}

/** A hook said something: a hook that lets everything pass leaves no event. */
export interface HookDecided {
  /** Its name. */
  hook: string;
  /** Where in the run it was asked. */
  point: "before_run" | "before_turn" | "before_action" | "after_action" | "after_run";
  /** What it did: added context, stopped the run, refused the call, changed its parameters, replaced its result; or it failed. */
  decision: "context" | "stop" | "deny" | "params" | "result" | "error";
  /** What it added, or why. */
  text?: string;
  callId?: string | null;
  action?: string | null;
  /** The parameters as it wants them. */
  params?: Record<string, Json> | null;
  /** An error that changes nothing, because the hook says so. */
  ignored?: boolean;
}

/** A loop ended: `done` passes went well, `failed` did not, `not_started` were never begun. */
export interface LoopCompleted {
  kind: "forEach" | "while";
  done: number;
  failed: number;
  notStarted?: number;
  /** Why it ended before its time; empty when it did not. */
  stopped?: string;
}

/** How far a loop is; sent to whoever listens, not stored. */
export interface LoopProgress {
  done: number;
  failed: number;
  passes?: number | null;
}

/** A loop begins. */
export interface LoopStarted {
  kind: "forEach" | "while";
  /** The collection's path, or the condition. */
  over: string;
  /** What each pass does, as in `action check`. */
  what: string;
  /** How many passes there will be, when that is known. */
  passes?: number | null;
  /** How many passes run at a time. */
  sideBySide?: number;
}

/** A run is shown notes of earlier runs. */
export interface MemoryRead {
  /** Ids of the notes, most relevant first. */
  notes: Array<string>;
  /** Why none could be read; the run goes on without. */
  error?: Record<string, Json> | null;
}

/** A reply asked for a note to be kept; `disposition` says what became of it. */
export interface MemoryWritten {
  /** Id of the effect. */
  callId: string;
  /** What became of it; absent when the store could not say. */
  disposition?: "written" | "superseded-own" | "pending" | "deduped" | "skipped-duplicate" | "skipped-cap" | "rejected-type" | "disabled" | null;
  /** The note, without secrets. */
  note: string;
  /** Preference or Context. */
  type: string;
  /** Id of the note that was kept. */
  id?: string | null;
  /** Who it is for: the run's user, or all users of the agent. */
  scope?: "user" | "agent" | null;
  /** Why it was not kept as it is. */
  reason?: string | null;
  /** What went wrong. */
  error?: Record<string, Json> | null;
}

/** A model was asked for something other than the next step. */
export interface ModelCalled {
  /** What for: `summary`, `verifier`, `conversation`, `embedding`, `action`. */
  purpose: string;
  /** `provider:model` that was asked. */
  model: string;
  /** What it cost. */
  usage: Record<string, Json>;
  /** Why nothing came of it. */
  error?: string | null;
}

/** One attempt at a model call failed; another follows. */
export interface ModelRetry {
  attempt: number;
  kind: string;
  message: string;
  delayMs: number;
  model?: string;
  /** Which model is asked next; another one than `model` when a fallback takes over. */
  nextModel?: string;
}

/** The payload changed, or a change of it was refused. */
export interface PayloadChanged {
  /** RFC 6902 operations against the payload before; empty when all was refused. */
  patch: Array<Record<string, Json>>;
  warnings?: Array<string>;
  /** What was not written, and why: not permitted, no such place, changed by another sub-agent as well. */
  refused?: Array<string>;
}

/** A pipeline ended, well or badly. */
export interface PipelineCompleted {
  ok: boolean;
  /** Calls of actions that it made. */
  calls: number;
  /** The beginning of its last value. */
  preview?: string;
  /** Where and why it failed. */
  error?: string | null;
}

/** A pipeline was begun; the events of its calls follow. */
export interface PipelineStarted {
  /** Its stages in short. */
  label: string;
  /** How many stages it has. */
  stages: number;
}

/** How a stage of a pipeline ended; told when the whole pipeline has ended. */
export interface PipelineStep {
  /** Place of the stage, from 0. */
  index: number;
  /** Name of the action, or the verb. */
  stage: string;
  ok: boolean;
  /** What the stage got, and how much of it. */
  before?: string;
  /** What it gave, and how much of it. */
  after?: string;
  /** The beginning of what it gave. */
  preview?: string;
  /** Entries that failed and became null. */
  missed?: number;
  /** Why it failed. */
  error?: string | null;
}

/** A person approved a plan; revision and hash say exactly which. */
export interface PlanApproved {
  revision: number;
  sha256: string;
  by: string;
  edited?: boolean;
}

/** A person changed the plan while approving it. */
export interface PlanEdited {
  revision: number;
  /** SHA-256 of the changed text as UTF-8. */
  sha256: string;
  by: string;
  /** The changed plan, which is now the plan of record. */
  text: string;
  /** Unified diff from what was proposed. */
  diff: string;
}

/** The model put a plan to a person. */
export interface PlanProposed {
  /** The card. */
  requestId: string;
  revision: number;
  /** SHA-256 of the text as UTF-8. */
  sha256: string;
  /** The plan, Markdown. */
  text: string;
  /** What the model says it will change. */
  effects?: Array<string>;
  /** Unified diff from the revision before. */
  diff?: string;
}

/** A person rejected a plan. */
export interface PlanRejected {
  revision: number;
  sha256: string;
  by: string;
  feedback?: string;
}

/** A piece of the reply that is arriving: more of a text, or a value that is complete.  The texts of a field, joined in order since the last `reply.retracted`, are its text. */
export interface ReplyDelta {
  /** The model call that the reply answers. */
  callId: string;
  /** Which attempt at the call; a new one starts anew. */
  attempt?: number;
  /** `message`, `reasoning`, `taskComplete`, `nextStep.type`, `nextStep.plan`, or a list like `nextStep.actions`. */
  field: string;
  /** Which entry, where the field is a list. */
  index?: number | null;
  /** What came of a text. */
  text?: string | null;
  /** A value that is complete. */
  value?: Json;
  /** Nothing more of it follows. */
  done?: boolean;
  /** Nothing more of it follows, although it is not complete. */
  truncated?: boolean;
  /** Of a message: what it is as far as is known; `reply.received` has the last word. */
  role?: "narration" | "answer" | "question" | null;
}

/** A reply was accepted. */
export interface ReplyReceived {
  /** The text as it came. */
  raw: string;
  /** Next step type, `complete` or `continue`. */
  type: string;
  /** Text for the person: narration, question or answer, as `type` says. */
  message?: string | null;
  /** What was tolerated or normalised. */
  warnings?: Array<string>;
  usage?: Record<string, Json>;
}

/** A reply was refused as a whole; nothing of it took effect. */
export interface ReplyRejected {
  raw: string;
  problems: Array<Record<string, string>>;
  usage?: Record<string, Json>;
}

/** The text of an accepted reply was no plain JSON, and was read all the same. */
export interface ReplyRepaired {
  /** What was left out, added or read otherwise. */
  repairs: Array<string>;
}

/** What was shown of a reply does not hold: of these fields, or of all when none is named. */
export interface ReplyRetracted {
  callId: string;
  attempt?: number;
  reason: "retry" | "fallback" | "refused" | "truncated" | "interrupted" | "corrected";
  fields?: Array<string> | null;
}

/** What was shown so far of the reply that is arriving, for a client that comes late or fell behind. */
export interface ReplySnapshot {
  callId: string;
  attempt?: number;
  /** Each field as one `reply.delta` would show it; what follows is appended. */
  fields: Array<Record<string, Json>>;
}

/** A reply was cut off; nothing of it took effect. */
export interface ReplyTruncated {
  raw: string;
  usage?: Record<string, Json>;
}

/** A request was closed because the run no longer needs it. */
export interface RequestCancelled {
  requestId: string;
  reason: string;
}

/** Somebody takes care of a request, or was given it; it ends with the request. */
export interface RequestClaimed {
  requestId: string;
  /** Who takes care of it from now on. */
  holder: string;
  /** Who said so: the holder, or whoever gave it to them. */
  by: string;
  /** Who had it before. */
  was?: string;
}

/** Somebody is asked to decide or answer; `primary`, `secondary`: the buttons, `{decision, label}`. */
export interface RequestCreated {
  requestId: string;
  kind: string;
  title: string;
  text?: string;
  form?: Record<string, Json> | null;
  subject?: Record<string, Json>;
  decisions?: Array<string>;
  /** Who asks: the agents from the root run to the one that asks. */
  agents?: Array<string>;
  revision?: number;
  contentHash?: string;
  primary?: Record<string, string>;
  secondary?: Record<string, string>;
  /** When nobody can answer any more, seconds since the epoch. */
  expiresAt?: number | null;
}

/** Nobody answered a request in time. */
export interface RequestExpired {
  requestId: string;
  /** What follows: `reject`, `fail`, or for a question of a server `cancel`. */
  then?: string;
}

/** Nobody takes care of a request any more, and it is still open. */
export interface RequestReleased {
  requestId: string;
  by: string;
  /** Who had it. */
  was: string;
}

/** A request was answered. */
export interface RequestResolved {
  requestId: string;
  decision: string;
  by: string;
  feedback?: string;
  values?: Record<string, Json>;
  edited?: boolean;
}

/** Somebody stopped the run. */
export interface RunCancelled {
  reason: string;
  by: string;
  usage: Record<string, Json>;
}

/** The run ended well. */
export interface RunCompleted {
  message?: string;
  usage: Record<string, Json>;
}

/** A run was created. */
export interface RunCreated {
  /** Name of the agent. */
  agent: string;
  /** SHA-256 of what the definition the run is pinned to says beyond the defaults. */
  specHash: string;
  /** `provider:model` that will answer. */
  model: string;
  /** The task. */
  message: string;
  /** `{name, kind, eventId}` of the trigger that started it. */
  trigger?: Record<string, string> | null;
  /** The conversation that the run belongs to. */
  conversationId?: string | null;
}

/** The run ended because it could not go on; everything done so far is kept. */
export interface RunFailed {
  /** Stable word: `limit`, `model`, `mistakes`, `truncated`, `stalled`, … */
  reason: string;
  /** What happened, for a person. */
  message: string;
  usage: Record<string, Json>;
}

/** The run is a copy of another one as it was before one of its turns, and goes its own way from here. */
export interface RunForked {
  fromRunId: string;
  /** The turn that this run takes anew. */
  turn: number;
  by: string;
  /** What was said to the copy. */
  message?: string | null;
  /** Whether it was given another payload. */
  newPayload?: boolean;
  /** Whether the approval of its plan does not hold for the copy, because something else was changed. */
  approvalDropped?: boolean;
}

/** The loop stopped, for whatever reason. */
export interface RunIdle {
  status: string;
}

/** Limits of the run were raised. */
export interface RunLimitsRaised {
  /** Name of the limit → how much is allowed now; null for any amount. */
  limits: Record<string, number | null>;
  before: Record<string, number | null>;
  by: string;
}

/** A message waits for the next turn boundary. */
export interface RunMessageQueued {
  text: string;
  /** `queue` or `steer`. */
  delivery: string;
  /** True when an identical message was waiting already. */
  merged?: boolean;
}

/** The run was switched between planning and acting. */
export interface RunModeChanged {
  before: "plan" | "act";
  mode: "plan" | "act";
  by: string;
}

/** The run stands still: what is under way is finished and kept, and nothing new is begun until it is resumed. */
export interface RunPaused {
  by: string;
  reason?: string;
  /** Because a run above it was paused. */
  above?: boolean;
}

/** The run goes on. */
export interface RunResumed {
  /** Why it stood still: `paused`, `limit`, `model`; absent where an answer was waited for. */
  reason?: string | null;
}

/** Work on the run began. */
export interface RunStarted {
}

/** The loop state that a client sees changed. */
export interface RunStateChanged {
  /** `running`, `interactive`, `followup`, `client_tool`, `idle` or `resumable`. */
  state: string;
  /** Why the run is idle: `completed`, `failed`, `cancelled`, `limit`; why it is resumable: `paused`, or `unattended` in an event without a number, which a server sends when it finds that nobody works on the run. */
  reason?: string | null;
  /** What is asked, with the buttons to draw. */
  ask?: Record<string, Json> | null;
}

/** The completion claim was accepted. */
export interface RunTaskComplete {
  /** The model's summary. */
  message: string;
  /** SHA-256 of the final payload as canonical JSON. */
  payloadHash: string;
  /** Actionable commands to offer. */
  commands?: Array<Record<string, Json>>;
  /** Form to offer; nothing waits for its answer. */
  form?: Record<string, Json> | null;
}

/** The run stopped to wait for somebody; a waiting run costs a row and nothing else. */
export interface RunWaiting {
  /** Ids of the open requests. */
  requests: Array<string>;
}

/** The model's private notes changed. */
export interface ScratchpadChanged {
  notes: string;
  tasks: Array<Record<string, Json>>;
}

/** A skill became active; what it brought may be used from now on. */
export interface SkillActivated {
  /** Name of the skill. */
  skill: string;
  /** SHA-256 of the content that was activated. */
  hash: string;
  /** Who asked for it. */
  activatedBy: "user" | "model";
  /** Why, in the model's words. */
  reason?: string | null;
  /** How the gates stood: `agent` and `skill` (`requested` or `auto`), and `reviewed`. */
  gates: Record<string, string | boolean>;
  /** Actions that may be called now and could not before. */
  actions: Array<string>;
  /** Sub-agents that may be called now. */
  agents: Array<string>;
  /** Number of the message that holds its instructions. */
  message: number;
}

/** A skill was asked for and not activated. */
export interface SkillRefused {
  skill: string;
  /** Who asked for it; what a model asks for in vain is in `reply.rejected`. */
  requestedBy?: "user";
  reason: string;
}

/** A sub-agent's work ended, well or badly, or its agent is asked something first (`status` is `asked`). */
export interface SubAgentCompleted {
  callId: string;
  agent: string;
  runId: string;
  ok: boolean;
  status: string;
  message?: string;
  error?: Record<string, Json> | null;
  /** What the whole run has used so far, with the runs below it. */
  usage?: Record<string, Json>;
  turns?: number;
  /** Working time; waiting for people does not count. */
  durationMs?: number;
}

/** A sub-agent was given work; its run's own events follow under `runId`. */
export interface SubAgentStarted {
  callId: string;
  agent: string;
  /** The child run. */
  runId: string;
  /** The work. */
  message: string;
  /** True when the message answers what that run had asked. */
  resumed?: boolean;
}

/** The turn is over: its reply and everything it asked for are settled. */
export interface TurnEnded {
  /** `step`, `complete`, `continue`, `refused`, `truncated`, `steered`, `cancelled` or `failed`. */
  outcome: string;
}

/** A planner call was issued. */
export interface TurnStarted {
}

/** The `data` of each type of event. */
export interface EventData {
  "action.completed": ActionCompleted;
  "action.discarded": ActionDiscarded;
  "action.progress": ActionProgress;
  "action.rejected": ActionRejected;
  "action.started": ActionStarted;
  "approval.forgotten": ApprovalForgotten;
  "approval.remembered": ApprovalRemembered;
  "approval.waived": ApprovalWaived;
  "artifact.created": ArtifactCreated;
  "artifact.read": ArtifactRead;
  "client_tool.completed": ClientToolCompleted;
  "client_tool.requested": ClientToolRequested;
  "command.issued": CommandIssued;
  "context.compacted": ContextCompacted;
  "context.expanded": ContextExpanded;
  "conversation.read": ConversationRead;
  "guard.limit": GuardLimit;
  "guard.mistake": GuardMistake;
  "guard.nudged": GuardNudged;
  "guard.repeated": GuardRepeated;
  "hook.decided": HookDecided;
  "loop.completed": LoopCompleted;
  "loop.progress": LoopProgress;
  "loop.started": LoopStarted;
  "memory.read": MemoryRead;
  "memory.written": MemoryWritten;
  "model.call": ModelCalled;
  "model.retry": ModelRetry;
  "payload.changed": PayloadChanged;
  "pipeline.completed": PipelineCompleted;
  "pipeline.started": PipelineStarted;
  "pipeline.step": PipelineStep;
  "plan.approved": PlanApproved;
  "plan.edited": PlanEdited;
  "plan.proposed": PlanProposed;
  "plan.rejected": PlanRejected;
  "reply.delta": ReplyDelta;
  "reply.received": ReplyReceived;
  "reply.rejected": ReplyRejected;
  "reply.repaired": ReplyRepaired;
  "reply.retracted": ReplyRetracted;
  "reply.snapshot": ReplySnapshot;
  "reply.truncated": ReplyTruncated;
  "request.cancelled": RequestCancelled;
  "request.claimed": RequestClaimed;
  "request.created": RequestCreated;
  "request.expired": RequestExpired;
  "request.released": RequestReleased;
  "request.resolved": RequestResolved;
  "run.cancelled": RunCancelled;
  "run.completed": RunCompleted;
  "run.created": RunCreated;
  "run.failed": RunFailed;
  "run.forked": RunForked;
  "run.idle": RunIdle;
  "run.limits_raised": RunLimitsRaised;
  "run.message_queued": RunMessageQueued;
  "run.mode_changed": RunModeChanged;
  "run.paused": RunPaused;
  "run.resumed": RunResumed;
  "run.started": RunStarted;
  "run.state": RunStateChanged;
  "run.task_complete": RunTaskComplete;
  "run.waiting": RunWaiting;
  "scratchpad.changed": ScratchpadChanged;
  "skill.activated": SkillActivated;
  "skill.refused": SkillRefused;
  "subagent.completed": SubAgentCompleted;
  "subagent.started": SubAgentStarted;
  "turn.ended": TurnEnded;
  "turn.started": TurnStarted;
}

/** Types of events that are sent and not stored: they have no `seq`. */
export type EphemeralType =
  | "action.progress"
  | "loop.progress"
  | "reply.delta"
  | "reply.retracted"
  | "reply.snapshot"
  | "run.idle";

/** What every event has. */
export interface Envelope {
  runId: string;
  rootRunId?: string;
  parentRunId?: string;
  forkedFrom?: string;
  turn?: number;
  /** Where in the tree, stable across a replay. */
  path?: string;
  decidedBy: "model" | "engine" | "human" | "policy" | "client" | "trigger";
}
