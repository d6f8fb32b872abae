// The TypeScript SDK 2 in both eras: node server-2.mjs --stdio | --http
//
// Each tool that asks is written once, as the SDK's documentation shows it: it returns what it needs until it has it.
// In the legacy era the SDK turns that into requests.
import { randomBytes, randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';

import * as c from './contract.mjs';

const {
  McpServer, ResourceTemplate, ResourceNotFoundError, UrlElicitationRequiredError, acceptedContent, completable, createMcpHandler,
  createRequestStateCodec, fromJsonSchema, inputRequired, inputResponse, isLegacyRequest, localhostAllowedHostnames,
  localhostAllowedOrigins, validateHostHeader, validateOriginHeader,
} = c.require('@modelcontextprotocol/server');
const { serveStdio } = c.require('@modelcontextprotocol/server/stdio');
const { NodeStreamableHTTPServerTransport, toNodeHandler, toWebRequest } = c.require('@modelcontextprotocol/node');
const z = c.require('zod');

const codec = createRequestStateCodec({ key: randomBytes(32) });
const counts = { ran: 0, stopped: 0 };
let version = 1;
let asked = 0;
// Legacy sessions with what they subscribed to; for the modern era the SDK keeps that.
const sessions = new Map();
// How to tell modern subscribers.
let modern = { toolsChanged() {}, promptsChanged() {}, resourcesChanged() {}, resourceUpdated() {} };

function build({ era }) {
  const server = new McpServer(
    { name: 'subject-typescript-2', version: '1.0.0' },
    {
      capabilities: {
        tools: { listChanged: true },
        prompts: { listChanged: true },
        resources: { subscribe: true, listChanged: true },
        logging: {},
        completions: {},
      },
      instructions: 'A server to be tested. It keeps nothing.',
      requestState: { verify: codec.verify },
    },
  );
  const tool = (name, inputSchema, call, more = {}) => server.registerTool(name, { inputSchema, ...more }, call);
  const plain = (name, description, call) => server.registerTool(name, { description }, call);

  tool('echo', z.object({ text: z.string() }), args => c.text(args.text), { description: 'Gives the text back' });
  tool('add', z.object({ a: z.number(), b: z.number() }), ({ a, b }) => c.structured({ sum: a + b }), {
    title: 'Addition', description: 'Adds two numbers', outputSchema: z.object({ sum: z.number() }),
    annotations: { readOnlyHint: true, idempotentHint: true },
  });
  tool('slow', z.object({ ms: z.int().min(0) }), async ({ ms }, ctx) => {
    counts.ran += 1;
    try {
      await sleep(ms, undefined, { signal: ctx.mcpReq.signal });
    } catch (error) {
      counts.stopped += 1;
      throw error;
    }
    return c.text(`Waited ${ms} ms`);
  }, { description: 'Waits; stops when the call is cancelled' });
  server.registerTool(
    'counter',
    {
      description: 'How many calls of slow began, and how many were stopped',
      outputSchema: z.object({ ran: z.number(), stopped: z.number() }),
    },
    () => c.structured({ ...counts }),
  );
  tool('flood', z.object({ n: z.int().min(0) }), async ({ n }, ctx) => {
    const progressToken = ctx.mcpReq._meta?.progressToken;
    for (let at = 1; at <= n && !ctx.mcpReq.signal.aborted; at += 1) {
      // Else nothing that comes in is heard.
      if (at % 64 === 0) await sleep(0);
      if (progressToken === undefined) await ctx.mcpReq.log('info', at, 'flood');
      else await ctx.mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress: at, total: n } });
    }
    return c.text(`Sent ${n}`);
  }, { description: 'Sends so many notifications' });
  plain('touch', 'Changes config://app', async () => {
    version += 1;
    modern.resourceUpdated('config://app');
    for (const [session, uris] of sessions) {
      if (uris.has('config://app')) await session.server.sendResourceUpdated({ uri: 'config://app' }).catch(() => {});
    }
    return c.text(`config://app has version ${version}`);
  });

  for (const [name, description, result] of c.FIXED) plain(name, description, () => result);
  server.registerTool('test_annotated_tool', c.ANNOTATED, () => c.text('annotated'));
  plain('test_tool_with_progress', 'Reports progress: 0, 50 and 100 of 100', async ctx => {
    const progressToken = ctx.mcpReq._meta?.progressToken;
    for (const progress of progressToken === undefined ? [] : [0, 50, 100]) {
      await ctx.mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress, total: 100 } });
    }
    return c.text('Tool with progress completed');
  });
  plain('test_tool_with_logging', 'Logs three messages of level info', async ctx => {
    for (const message of ['Tool execution started', 'Tool processing data', 'Tool execution completed']) {
      await ctx.mcpReq.log('info', message);
    }
    return c.text('Tool with logging completed');
  });
  plain('test_logging_tool', 'Logs a message of each level', async ctx => {
    for (const level of c.LEVELS) await ctx.mcpReq.log(level, level, 'test_logging_tool');
    return c.text('Logged');
  });
  for (const [kind, legacy] of [
    ['tool', each => each.sendToolListChanged()],
    ['prompt', each => each.sendPromptListChanged()],
    ['resource', each => each.sendResourceListChanged()],
  ]) {
    plain(`test_trigger_${kind}_change`, `Says that the list of ${kind}s changed`, async () => {
      modern[`${kind}sChanged`]();
      for (const session of sessions.keys()) await legacy(session);
      return c.text(`Said that the list of ${kind}s changed`);
    });
  }
  plain('test_request_meta', "Gives com.example/note of the request's _meta back", ctx =>
    c.text(JSON.stringify(ctx.mcpReq._meta?.['com.example/note'] ?? null)));

  const back = args => c.text(JSON.stringify(args));
  tool('json_schema_2020_12_tool', fromJsonSchema(c.EVERY_KEYWORD), back, { description: 'Has every keyword' });
  tool('mirror', fromJsonSchema(c.MIRROR), back, { description: 'Gives its arguments back' });
  tool('test_x_mcp_header', fromJsonSchema(c.MIRRORED), ({ region }) => c.text(`region: ${region ?? 'none'}`), {
    description: 'Has an argument that HTTP clients repeat in a header',
  });

  // Questions: what is answered already goes into the state; what is missing is asked.
  const rounds = async (ctx, questions, done) => {
    const answers = { ...(ctx.mcpReq.requestState()?.answers ?? {}) };
    for (const group of questions) {
      const missing = {};
      for (const [key, request] of Object.entries(group)) {
        if (key in answers) continue;
        const view = inputResponse(ctx.mcpReq.inputResponses, key);
        const schema = request.params?.requestedSchema;
        if (view.kind === 'elicit' && view.action !== 'accept') return done({ ...answers, [key]: { action: view.action } });
        if (view.kind === 'elicit' && !schema) answers[key] = { action: view.action };
        else if (view.kind === 'elicit') {
          const content = await acceptedContent(ctx.mcpReq.inputResponses, key, fromJsonSchema(schema));
          if (content === undefined && era === 'legacy') return c.failure(`${key}: not an answer to the question`);
          if (content === undefined) missing[key] = request;
          else answers[key] = { action: view.action, content };
        } else if (view.kind === 'sampling') answers[key] = view.result;
        else if (view.kind === 'roots') answers[key] = { roots: view.roots };
        else missing[key] = request;
      }
      if (Object.keys(missing).length > 0) {
        return inputRequired({ inputRequests: missing, requestState: await codec.mint({ answers }) });
      }
    }
    return done(answers);
  };
  const elicit = (message, properties, required) => inputRequired.elicit(c.form(message, properties, required));
  const sample = (content, more) => inputRequired.createMessage(c.ask(content, more));
  const accepted = (answer, then) => (answer.action === 'accept' ? then(answer.content) : c.failure(`The user said ${answer.action}`));
  const question = (name, description, key, message, properties, then) =>
    plain(name, description, ctx => rounds(ctx, [{ [key]: elicit(message, properties) }], answers => accepted(answers[key], then)));

  tool('deploy', z.object({ env: z.string() }), ({ env }, ctx) => rounds(
    ctx,
    [
      { confirm: elicit(`Deploy to ${env}?`, { confirm: { type: 'boolean' } }) },
      { region: elicit('To which region?', { region: { type: 'string' } }) },
    ],
    ({ confirm, region }) => accepted(confirm, ({ confirm }) => accepted(region, ({ region }) =>
      c.text(`Deploy to ${env}: confirm=${confirm}, region=${region}`))),
  ), { description: 'Deploys, after two questions' });
  tool('test_sampling', z.object({ prompt: z.string() }), ({ prompt }, ctx) =>
    rounds(ctx, [{ model: sample(prompt) }], ({ model }) => c.text(`LLM response: ${c.said(model)}`)), {
    description: "Asks the client's model",
  });
  tool('test_elicitation', z.object({ message: z.string() }), ({ message }, ctx) =>
    rounds(ctx, [{ user: elicit(message, c.PERSON) }], ({ user }) => c.text(`User response: ${c.did(user)}`)), {
    description: 'Asks the user for a name and an address',
  });
  for (const [name, description, properties, required] of [
    ['test_elicitation_sep1034_defaults', 'Asks for fields of every type, each with a default', c.DEFAULTS, []],
    ['test_elicitation_sep1330_enums', 'Asks for choices in every form', c.CHOICES, []],
    ['test_elicitation_constraints', 'Asks for fields with bounds', c.BOUNDS, ['code', 'count']],
  ]) {
    plain(name, description, ctx => rounds(ctx, [{ form: elicit('Please fill in', properties, required) }], ({ form }) =>
      c.text(`Elicitation completed: ${c.did(form)}`)));
  }
  const signIn = { message: 'Please sign in', url: 'https://example.com/sign-in' };
  plain('test_elicitation_url', 'Asks the user to visit a URL', async ctx => {
    if (era === 'modern') {
      return rounds(ctx, [{ sign_in: inputRequired.elicitUrl(signIn) }], ({ sign_in: { action } }) => c.text(`action=${action}`));
    }
    const elicitationId = `sign-in-${asked += 1}`;
    const { action } = await ctx.mcpReq.elicitInput({ mode: 'url', elicitationId, ...signIn });
    if (action === 'accept') await server.server.createElicitationCompletionNotifier(elicitationId)();
    return c.text(`action=${action}`);
  });
  plain('test_elicitation_url_required', 'Needs the user to visit a URL first', ctx => {
    if (era === 'modern') return rounds(ctx, [{ sign_in: inputRequired.elicitUrl(signIn) }], () => c.text('Signed in'));
    throw new UrlElicitationRequiredError([{ mode: 'url', elicitationId: 'sign-in', ...signIn }]);
  });
  plain('test_sampling_tools', "Asks the client's model and lends it a tool", ctx =>
    rounds(ctx, [{ model: sample('What is the weather?', c.WEATHER) }], ({ model }) =>
      c.text(`stopReason=${model.stopReason ?? 'none'}, text=${c.said(model)}`)));
  for (const [name, key] of [['test_missing_capability', 'model'], ['test_input_required_result_sampling', 'capital_question']]) {
    plain(name, "Asks the client's model", ctx =>
      rounds(ctx, [{ [key]: sample('What is the capital of France?') }], answers => c.text(c.said(answers[key]))));
  }
  question('test_streaming_elicitation', 'Asks the user', 'confirm', 'Go on?', c.OK, ({ ok }) => c.text(`confirm=${ok}`));
  question('test_input_required_result_elicitation', 'Asks for a name', 'user_name', 'What is your name?', c.NAME, ({ name }) =>
    c.text(`Hello, ${name}!`));
  question('test_input_required_result_request_state', 'Asks for a confirmation', 'confirm', 'Please confirm', c.OK, ({ ok }) =>
    c.text(ok ? 'state-ok' : 'state-refused'));
  question('test_input_required_result_tampered_state', 'Asks for a confirmation', 'confirm', 'Please confirm', c.OK, ({ ok }) =>
    c.text(`confirm=${ok}`));
  plain('test_input_required_result_list_roots', "Asks for the client's roots", ctx =>
    rounds(ctx, [{ client_roots: inputRequired.listRoots() }], ({ client_roots: { roots } }) =>
      c.text(`Roots: ${roots.map(root => root.uri).join(', ')}`)));
  const name = () => elicit('What is your name?', c.NAME);
  const greeting = () => sample('Write a short greeting');
  plain('test_input_required_result_multiple_inputs', 'Asks three things in one round', ctx =>
    rounds(ctx, [{ user_name: name(), greeting: greeting(), client_roots: inputRequired.listRoots() }], answers =>
      accepted(answers.user_name, ({ name }) =>
        c.text(`${c.said(answers.greeting)}, ${name}: ${answers.client_roots.roots.length} roots`))));
  plain('test_input_required_result_multi_round', 'Asks for a name, then for a color', ctx =>
    rounds(
      ctx,
      [
        { step1: elicit('Step 1: What is your name?', c.NAME) },
        { step2: elicit('Step 2: What is your favorite color?', { color: { type: 'string' } }) },
      ],
      ({ step1, step2 }) => accepted(step1, ({ name }) => accepted(step2, ({ color }) => c.text(`${name} likes ${color}`))),
    ));
  if (era === 'modern') {
    plain('test_input_required_result_capabilities', 'Asks only what the client can be asked', ctx => {
      const can = ctx.mcpReq.envelope?.['io.modelcontextprotocol/clientCapabilities'] ?? {};
      const group = { ...(can.elicitation && { user_name: name() }), ...(can.sampling && { greeting: greeting() }) };
      return rounds(ctx, [group], answers => c.text([
        ...(answers.user_name ? [`name=${answers.user_name.content?.name}`] : []),
        ...(answers.greeting ? [`greeting=${c.said(answers.greeting)}`] : []),
      ].join(', ') || 'Nothing can be asked'));
    });
  }

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
    { title: 'Greeting', argsSchema: z.object({ tone: completable(z.string(), value => c.startsWith(c.TONES, value)) }) },
    ({ tone }) => says(`Greet me in a ${tone} tone.`),
  );
  prompt('test_simple_prompt', { description: 'A text' }, () => says(c.PROMPTS.simple));
  prompt(
    'test_prompt_with_arguments',
    {
      description: 'A text with both arguments in it',
      argsSchema: z.object({
        arg1: completable(z.string(), value => c.startsWith(c.ARG1, value)),
        arg2: completable(z.string(), (value, context) => {
          const first = context?.arguments?.arg1;
          return first === undefined ? [] : c.startsWith([`${first}-second`], value);
        }),
      }),
    },
    ({ arg1, arg2 }) => says(c.PROMPTS.both(arg1, arg2)),
  );
  prompt(
    'test_prompt_with_embedded_resource', { description: 'A resource', argsSchema: z.object({ resourceUri: z.string() }) },
    ({ resourceUri }) => ({ messages: c.promptResource(resourceUri) }),
  );
  prompt('test_prompt_with_image', { description: 'An image' }, () => ({ messages: c.PROMPT_IMAGE }));
  prompt('test_input_required_result_prompt', { description: 'Asks the user first' }, ctx =>
    rounds(ctx, [{ user_context: elicit('What context should the prompt use?', { context: { type: 'string' } }) }], answers =>
      says(`Use this context: ${answers.user_context.content?.context}`)));

  if (era === 'legacy') {
    const uris = new Set();
    sessions.set(server, uris);
    const known = uri => {
      if (!['config://app', 'test://static-text', 'test://static-binary', 'test://watched-resource'].includes(uri)) {
        throw new ResourceNotFoundError(uri);
      }
      return uri;
    };
    server.server.setRequestHandler('resources/subscribe', ({ params }) => (uris.add(known(params.uri)), {}));
    server.server.setRequestHandler('resources/unsubscribe', ({ params }) => (uris.delete(params.uri), {}));
    server.server.onclose = () => sessions.delete(server);
  }
  return server;
}

async function http() {
  const handler = createMcpHandler(build, { legacy: 'reject' });
  modern = handler.notify;
  const serve = toNodeHandler(handler);
  const transports = new Map();
  const refuse = (res, status, code, message) => {
    res.writeHead(status, { 'content-type': 'application/json' });
    res.end(JSON.stringify({ jsonrpc: '2.0', id: null, error: { code, message } }));
  };

  const legacy = async (req, res, body) => {
    const id = req.headers['mcp-session-id'];
    if (id !== undefined) {
      const transport = transports.get(id);
      if (transport) return transport.handleRequest(req, res, body);
      return refuse(res, 404, -32001, 'Session not found');
    }
    const transport = new NodeStreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      eventStore: new c.Events(),
      onsessioninitialized: name => void transports.set(name, transport),
      onsessionclosed: name => void transports.delete(name),
    });
    await build({ era: 'legacy' }).connect(transport);
    return transport.handleRequest(req, res, body);
  };
  const listener = createServer(async (req, res) => {
    try {
      const host = validateHostHeader(req.headers.host, localhostAllowedHostnames());
      if (!host.ok) return refuse(res, 403, -32000, host.message);
      const origin = validateOriginHeader(req.headers.origin, localhostAllowedOrigins());
      if (!origin.ok) return refuse(res, 403, -32000, origin.message);
      if (req.url !== '/mcp') return res.writeHead(404).end();
      const chunks = [];
      for await (const chunk of req) chunks.push(chunk);
      let body;
      if (chunks.length > 0) {
        try {
          body = JSON.parse(Buffer.concat(chunks));
        } catch {
          return refuse(res, 400, -32700, 'Parse error: Invalid JSON');
        }
      }
      return await (await isLegacyRequest(await toWebRequest(req, body), body) ? legacy : serve)(req, res, body);
    } catch (error) {
      console.error(error);
      if (!res.headersSent) res.writeHead(500);
      return res.end();
    }
  });
  await new Promise(resolve => listener.listen(0, '127.0.0.1', resolve));
  console.error(`listening on http://127.0.0.1:${listener.address().port}/mcp`);
}

if (process.argv[2] === '--stdio') {
  // The instance that serves a modern connection is built when the client has spoken.
  serveStdio(context => {
    const instance = build(context);
    if (context.era === 'modern') {
      modern = {
        toolsChanged: () => instance.sendToolListChanged(),
        promptsChanged: () => instance.sendPromptListChanged(),
        resourcesChanged: () => instance.sendResourceListChanged(),
        resourceUpdated: uri => instance.server.sendResourceUpdated({ uri }),
      };
    }
    return instance;
  });
} else if (process.argv[2] === '--http') {
  await http();
} else {
  console.error('expected --stdio or --http');
  process.exit(2);
}
