// The TypeScript SDK 1, which has the legacy era only: node server-1.mjs --stdio | --http
//
// Over HTTP it serves the transport of 2024-11-05 beside Streamable HTTP, as the SDK's example for old clients does.
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';

import * as c from './contract.mjs';

const { McpServer, ResourceTemplate } = c.require('sdk-1.32/server/mcp.js');
const { StdioServerTransport } = c.require('sdk-1.32/server/stdio.js');
const { StreamableHTTPServerTransport } = c.require('sdk-1.32/server/streamableHttp.js');
const { SSEServerTransport } = c.require('sdk-1.32/server/sse.js');
const { createMcpExpressApp } = c.require('sdk-1.32/server/express.js');
const { completable } = c.require('sdk-1.32/server/completable.js');
const { InMemoryTaskMessageQueue, InMemoryTaskStore } = c.require('sdk-1.32/experimental/tasks/stores/in-memory.js');
const {
  McpError, SubscribeRequestSchema, UnsubscribeRequestSchema, UrlElicitationRequiredError,
  isInitializeRequest,
} = c.require('sdk-1.32/types.js');
const z = c.require('zod');

const counts = { ran: 0, stopped: 0 };
let version = 1;
let asked = 0;
// The sessions with what they subscribed to.
const sessions = new Map();
const store = new InMemoryTaskStore();
const queue = new InMemoryTaskMessageQueue();

function build() {
  const server = new McpServer(
    { name: 'subject-typescript-1', version: '1.0.0' },
    {
      capabilities: {
        tools: { listChanged: true },
        prompts: { listChanged: true },
        resources: { subscribe: true, listChanged: true },
        logging: {},
        completions: {},
        tasks: { list: {}, cancel: {}, requests: { tools: { call: {} } } },
      },
      instructions: 'A server to be tested. It keeps nothing.',
      // Else the SDK asks clients for what they did not declare.
      enforceStrictCapabilities: true,
      taskStore: store,
      taskMessageQueue: queue,
    },
  );
  const tool = (name, inputSchema, call, more = {}) => server.registerTool(name, { inputSchema, ...more }, call);
  const plain = (name, description, call) => server.registerTool(name, { description }, call);
  const log = (extra, level, data, logger) =>
    server.sendLoggingMessage({ level, data, ...(logger && { logger }) }, extra.sessionId);
  const progress = async (extra, at, total) => {
    const progressToken = extra._meta?.progressToken;
    if (progressToken === undefined) return;
    await extra.sendNotification({ method: 'notifications/progress', params: { progressToken, progress: at, total } });
  };

  tool('echo', { text: z.string() }, args => c.text(args.text), { description: 'Gives the text back' });
  tool('add', { a: z.number(), b: z.number() }, ({ a, b }) => c.structured({ sum: a + b }), {
    title: 'Addition', description: 'Adds two numbers', outputSchema: { sum: z.number() },
    annotations: { readOnlyHint: true, idempotentHint: true },
  });
  tool('slow', { ms: z.int().min(0) }, async ({ ms }, extra) => {
    counts.ran += 1;
    try {
      await sleep(ms, undefined, { signal: extra.signal });
    } catch (error) {
      counts.stopped += 1;
      throw error;
    }
    return c.text(`Waited ${ms} ms`);
  }, { description: 'Waits; stops when the call is cancelled' });
  server.registerTool(
    'counter',
    { description: 'How many calls of slow began, and how many were stopped', outputSchema: { ran: z.number(), stopped: z.number() } },
    () => c.structured({ ...counts }),
  );
  tool('flood', { n: z.int().min(0) }, async ({ n }, extra) => {
    for (let at = 1; at <= n && !extra.signal.aborted; at += 1) {
      // Else nothing that comes in is heard.
      if (at % 64 === 0) await sleep(0);
      if (extra._meta?.progressToken === undefined) await log(extra, 'info', at, 'flood');
      else await progress(extra, at, n);
    }
    return c.text(`Sent ${n}`);
  }, { description: 'Sends so many notifications' });
  plain('touch', 'Changes config://app', async () => {
    version += 1;
    for (const [session, uris] of sessions) {
      if (uris.has('config://app')) await session.server.sendResourceUpdated({ uri: 'config://app' }).catch(() => {});
    }
    return c.text(`config://app has version ${version}`);
  });

  for (const [name, description, result] of c.FIXED) plain(name, description, () => result);
  server.registerTool('test_annotated_tool', c.ANNOTATED, () => c.text('annotated'));
  plain('test_tool_with_progress', 'Reports progress: 0, 50 and 100 of 100', async extra => {
    for (const at of [0, 50, 100]) await progress(extra, at, 100);
    return c.text('Tool with progress completed');
  });
  plain('test_tool_with_logging', 'Logs three messages of level info', async extra => {
    for (const message of ['Tool execution started', 'Tool processing data', 'Tool execution completed']) await log(extra, 'info', message);
    return c.text('Tool with logging completed');
  });
  plain('test_logging_tool', 'Logs a message of each level', async extra => {
    for (const level of c.LEVELS) await log(extra, level, level, 'test_logging_tool');
    return c.text('Logged');
  });
  for (const [kind, tell] of [
    ['tool', each => each.sendToolListChanged()],
    ['prompt', each => each.sendPromptListChanged()],
    ['resource', each => each.sendResourceListChanged()],
  ]) {
    plain(`test_trigger_${kind}_change`, `Says that the list of ${kind}s changed`, async () => {
      for (const session of sessions.keys()) await tell(session);
      return c.text(`Said that the list of ${kind}s changed`);
    });
  }
  plain('test_request_meta', "Gives com.example/note of the request's _meta back", extra =>
    c.text(JSON.stringify(extra._meta?.['com.example/note'] ?? null)));

  const elicit = (extra, message, properties, required) =>
    server.server.elicitInput(c.form(message, properties, required), { relatedRequestId: extra.requestId });
  const sample = (extra, content, more) => server.server.createMessage(c.ask(content, more), { relatedRequestId: extra.requestId });
  const accepted = (answer, then) => (answer.action === 'accept' ? then(answer.content) : c.failure(`The user said ${answer.action}`));
  tool('deploy', { env: z.string() }, async ({ env }, extra) => {
    const confirm = await elicit(extra, `Deploy to ${env}?`, { confirm: { type: 'boolean' } });
    if (confirm.action !== 'accept') return accepted(confirm);
    return accepted(await elicit(extra, 'To which region?', { region: { type: 'string' } }), ({ region }) =>
      c.text(`Deploy to ${env}: confirm=${confirm.content.confirm}, region=${region}`));
  }, { description: 'Deploys, after two questions' });
  tool('test_sampling', { prompt: z.string() }, async ({ prompt }, extra) =>
    c.text(`LLM response: ${c.said(await sample(extra, prompt))}`), { description: "Asks the client's model" });
  tool('test_elicitation', { message: z.string() }, async ({ message }, extra) =>
    c.text(`User response: ${c.did(await elicit(extra, message, c.PERSON))}`), {
    description: 'Asks the user for a name and an address',
  });
  for (const [name, description, properties, required] of [
    ['test_elicitation_sep1034_defaults', 'Asks for fields of every type, each with a default', c.DEFAULTS, []],
    ['test_elicitation_sep1330_enums', 'Asks for choices in every form', c.CHOICES, []],
    ['test_elicitation_constraints', 'Asks for fields with bounds', c.BOUNDS, ['code', 'count']],
  ]) {
    plain(name, description, async extra =>
      c.text(`Elicitation completed: ${c.did(await elicit(extra, 'Please fill in', properties, required))}`));
  }
  const signIn = { message: 'Please sign in', url: 'https://example.com/sign-in' };
  plain('test_elicitation_url', 'Asks the user to visit a URL', async extra => {
    const elicitationId = `sign-in-${asked += 1}`;
    const { action } = await server.server.elicitInput({ mode: 'url', elicitationId, ...signIn }, { relatedRequestId: extra.requestId });
    if (action === 'accept') await server.server.createElicitationCompletionNotifier(elicitationId)();
    return c.text(`action=${action}`);
  });
  plain('test_elicitation_url_required', 'Needs the user to visit a URL first', () => {
    throw new UrlElicitationRequiredError([{ mode: 'url', elicitationId: 'sign-in', ...signIn }]);
  });
  plain('test_sampling_tools', "Asks the client's model and lends it a tool", async extra => {
    const model = await sample(extra, 'What is the weather?', c.WEATHER);
    return c.text(`stopReason=${model.stopReason ?? 'none'}, text=${c.said(model)}`);
  });

  // Tasks. What the SDK calls experimental is all that it has for them.
  const job = (name, description, inputSchema, taskSupport, run) => server.experimental.tasks.registerToolTask(
    name,
    { description, inputSchema, execution: { taskSupport } },
    {
      createTask: async (args, { taskStore, taskRequestedTtl, ...extra }) => {
        const task = await taskStore.createTask({ ttl: taskRequestedTtl, pollInterval: 50 });
        const end = async () => {
          const result = await run(args, { ...extra, task: task.taskId });
          await taskStore.storeTaskResult(task.taskId, result.isError ? 'failed' : 'completed', result);
        };
        // A task that was cancelled meanwhile takes no result.
        end().catch(() => {});
        return { task };
      },
      getTask: (_, { taskId, taskStore }) => taskStore.getTask(taskId),
      getTaskResult: (_, { taskId, taskStore }) => taskStore.getTaskResult(taskId),
    },
  );
  job('slow_compute', 'Computes slowly', { seconds: z.int().min(0), label: z.string() }, 'optional', async ({ seconds, label }) => {
    await sleep(seconds * 1000);
    return c.text(`${label} computed in ${seconds} s`);
  });
  job('failing_job', 'Only runs as a task, and reports an error', {}, 'required', async () => {
    // A task begins as one that works.
    await sleep(100);
    return c.failure('This job always fails');
  });
  tool('greet', { name: z.string() }, ({ name }) => c.text(`Hello, ${name}!`), { description: 'Greets at once, never as a task' });

  const resource = (name, uri, more, content) =>
    server.registerResource(name, uri, more, url => ({ contents: [{ uri: url.href, mimeType: more.mimeType, ...content() }] }));
  resource('app', 'config://app', { title: 'Configuration', mimeType: 'application/json' }, () => ({ text: `{"version":${version}}` }));
  resource(
    'static-text', 'test://static-text',
    {
      title: 'Static text', description: 'A text that never changes', mimeType: 'text/plain', size: c.STATIC_TEXT.length,
      annotations: { audience: ['user'], priority: 0.5 },
    },
    () => ({ text: c.STATIC_TEXT }),
  );
  resource('static-binary', 'test://static-binary', { mimeType: 'image/png', size: 69 }, () => ({ blob: c.PNG }));
  resource('watched-resource', 'test://watched-resource', { mimeType: 'text/plain' }, () => ({ text: 'Watch me' }));
  server.registerResource(
    'template-data', new ResourceTemplate('test://template/{id}/data', { list: undefined }), { mimeType: 'application/json' },
    (uri, { id }) => ({ contents: [{ uri: uri.href, mimeType: 'application/json', text: c.templateData(decodeURIComponent(id)) }] }),
  );
  server.registerResource(
    'users', new ResourceTemplate('users://{id}', { list: undefined, complete: { id: value => c.startsWith(c.USERS, value) } }),
    { mimeType: 'text/plain' },
    (uri, { id }) => ({ contents: [{ uri: uri.href, mimeType: 'text/plain', text: `User ${id}` }] }),
  );

  const prompt = (name, more, call) => server.registerPrompt(name, more, call);
  const says = content => ({ messages: [c.said_by_user(content)] });
  prompt(
    'greet',
    { title: 'Greeting', argsSchema: { tone: completable(z.string(), value => c.startsWith(c.TONES, value)) } },
    ({ tone }) => says(`Greet me in a ${tone} tone.`),
  );
  prompt('test_simple_prompt', { description: 'A text' }, () => says(c.PROMPTS.simple));
  prompt(
    'test_prompt_with_arguments',
    {
      description: 'A text with both arguments in it',
      argsSchema: {
        arg1: completable(z.string(), value => c.startsWith(c.ARG1, value)),
        arg2: completable(z.string(), (value, context) => {
          const first = context?.arguments?.arg1;
          return first === undefined ? [] : c.startsWith([`${first}-second`], value);
        }),
      },
    },
    ({ arg1, arg2 }) => says(c.PROMPTS.both(arg1, arg2)),
  );
  prompt('test_prompt_with_embedded_resource', { description: 'A resource', argsSchema: { resourceUri: z.string() } }, ({ resourceUri }) => ({
    messages: c.promptResource(resourceUri),
  }));
  prompt('test_prompt_with_image', { description: 'An image' }, () => ({ messages: c.PROMPT_IMAGE }));

  const uris = new Set();
  sessions.set(server, uris);
  const known = uri => {
    if (!['config://app', 'test://static-text', 'test://static-binary', 'test://watched-resource'].includes(uri)) {
      throw new McpError(-32002, 'Resource not found', { uri });
    }
    return uri;
  };
  server.server.setRequestHandler(SubscribeRequestSchema, ({ params }) => (uris.add(known(params.uri)), {}));
  server.server.setRequestHandler(UnsubscribeRequestSchema, ({ params }) => (uris.delete(params.uri), {}));
  server.server.onclose = () => sessions.delete(server);
  return server;
}

async function http() {
  const app = createMcpExpressApp();
  const transports = new Map();
  const origins = [];
  const refuse = (res, status, code, message) => res.status(status).json({ jsonrpc: '2.0', id: null, error: { code, message } });

  app.all('/mcp', async (req, res) => {
    const id = req.headers['mcp-session-id'];
    if (id !== undefined) {
      const transport = transports.get(id);
      if (!transport) return refuse(res, 404, -32001, 'Session not found');
      return transport.handleRequest(req, res, req.body);
    }
    if (req.method !== 'POST' || !isInitializeRequest(req.body)) {
      return refuse(res, 400, -32000, 'Bad Request: no valid session id provided');
    }
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      enableDnsRebindingProtection: true,
      allowedOrigins: origins,
      eventStore: new c.Events(),
      onsessioninitialized: name => void transports.set(name, transport),
      onsessionclosed: name => void transports.delete(name),
    });
    await build().connect(transport);
    return transport.handleRequest(req, res, req.body);
  });

  const old = new Map();
  app.get('/sse', async (req, res) => {
    const transport = new SSEServerTransport('/messages', res, { enableDnsRebindingProtection: true, allowedOrigins: origins });
    old.set(transport.sessionId, transport);
    res.on('close', () => old.delete(transport.sessionId));
    await build().connect(transport);
  });
  app.post('/messages', async (req, res) => {
    const transport = old.get(req.query.sessionId);
    if (!transport) return res.status(400).send('No transport found for sessionId');
    return transport.handlePostMessage(req, res, req.body);
  });
  const listener = app.listen(0, '127.0.0.1', () => {
    const { port } = listener.address();
    origins.push(`http://127.0.0.1:${port}`, `http://localhost:${port}`);
    console.error(`events on http://127.0.0.1:${port}/sse`);
    console.error(`listening on http://127.0.0.1:${port}/mcp`);
  });
}

if (process.argv[2] === '--stdio') {
  await build().connect(new StdioServerTransport());
} else if (process.argv[2] === '--http') {
  await http();
} else {
  console.error('expected --stdio or --http');
  process.exit(2);
}
