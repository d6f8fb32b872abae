// `mcp-conformance probe`, done with the TypeScript client 2.4.0: takes the same plan, tells the same lines. So plans
// can be tried without our client, and a step that fails with both is not a fault of ours.
//
//   node probe.mjs [--era auto|modern|legacy] --plan FILE (--url URL | --sse URL | -- COMMAND [ARGS…])
//
// MCP_PEERS names the folder that holds node_modules. With MCP_WIRE set every message goes to standard error.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { tap } from './steps.mjs';

const require = createRequire(join(process.env.MCP_PEERS, 'package.json'));
const { Client, SSEClientTransport, StreamableHTTPClientTransport } = require('@modelcontextprotocol/client');
const { StdioClientTransport } = require('@modelcontextprotocol/client/stdio');
const z = require('zod');

const MODERN = '2026-07-28';
const TASKS = 'io.modelcontextprotocol/tasks';
const options = { era: 'auto' };
const words = process.argv.slice(2);
while (words.length && words[0] !== '--') {
  const [word, value] = words.splice(0, 2);
  if (!/^--(era|plan|url|sse)$/.test(word) || value === undefined) {
    console.error(`expected an option with its value, got ${word}`);
    process.exit(2);
  }
  options[word.slice(2)] = value;
}
const plan = JSON.parse(readFileSync(options.plan, 'utf8'));
const answers = plan.answers ?? {};

const client = new Client({ name: 'peer-probe', version: '1.0.0' }, {
  capabilities: {
    ...('elicitation' in answers || 'url' in answers) && { elicitation: { ...'elicitation' in answers && { form: {} }, ...'url' in answers && { url: {} } } },
    ...'sampling' in answers && { sampling: {} },
    ...'roots' in answers && { roots: { listChanged: true } },
    ...plan.tasks && { extensions: { [TASKS]: {} } },
  },
  versionNegotiation: { mode: options.era === 'modern' ? { pin: MODERN } : options.era },
});
client.onerror = error => console.error(`client: ${error.message}`);
if ('elicitation' in answers || 'url' in answers) {
  client.setRequestHandler('elicitation/create', ({ params }) => {
    const chosen = params.mode === 'url' ? { $action: answers.url ?? 'decline' } : answers.elicitation ?? { $action: 'decline' };
    if (chosen.$action) return { action: chosen.$action };
    const fields = Object.entries(params.requestedSchema.properties)
      .map(([key, schema]) => [key, chosen[key] ?? schema.default])
      .filter(([, value]) => value !== undefined);
    return { action: 'accept', content: Object.fromEntries(fields) };
  });
}
if ('sampling' in answers) client.setRequestHandler('sampling/createMessage', () => answers.sampling);
if ('roots' in answers) client.setRequestHandler('roots/list', () => ({ roots: answers.roots }));

const transport = options.url ? new StreamableHTTPClientTransport(new URL(options.url))
  : options.sse ? new SSEClientTransport(new URL(options.sse))
  : new StdioClientTransport({ command: words[1], args: words.slice(2), stderr: 'inherit', env: process.env });
const wire = tap(transport);
let told = 0;
let level;

/** Of a step: what came on the wire since it began, whatever the SDK makes of it. */
function seen(from, method) {
  return wire.slice(from).filter(({ from: side, message }) => side === 'server' && message.method === method).map(({ message }) => message.params);
}

async function pages(kind) {
  const [method, member] = {
    tools: ['listTools', 'tools'], resources: ['listResources', 'resources'],
    templates: ['listResourceTemplates', 'resourceTemplates'], prompts: ['listPrompts', 'prompts'],
  }[kind];
  const all = [];
  let cursor;
  do {
    const page = await client[method](cursor === undefined ? undefined : { cursor });
    all.push(...page[member]);
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  return { [member]: all };
}

/** In-core tasks of 2025-11-25, by hand: this SDK has their types only. */
async function taskCall(params) {
  const { task } = await client.request({ method: 'tools/call', params: { ...params, task: { ttl: 60_000 } } }, z.looseObject({}));
  for (let state = task; !['completed', 'failed', 'cancelled', 'input_required'].includes(state.status);) {
    await sleep(task.pollInterval ?? 100);
    state = await client.request({ method: 'tasks/get', params: { taskId: task.taskId } }, z.looseObject({}));
  }
  return client.request({ method: 'tasks/result', params: { taskId: task.taskId } }, z.looseObject({}));
}

const open = new Map();
const legacy = () => client.getNegotiatedProtocolVersion() !== MODERN;
const kinds = {
  list: ['list', step => pages(step.list)],
  call: ['tools/call', (step, more) => {
    const params = { name: step.call, arguments: step.arguments ?? {} };
    if (level && !legacy()) params._meta = { 'io.modelcontextprotocol/logLevel': level };
    return step.task && legacy() ? taskCall(params) : client.callTool(params, more);
  }],
  read: ['resources/read', step => client.readResource({ uri: step.read })],
  prompt: ['prompts/get', step => client.getPrompt({ name: step.prompt, arguments: step.arguments })],
  complete: ['completion/complete', step => client.complete(step.complete)],
  subscribe: ['resources/subscribe', step => client.subscribeResource({ uri: step.subscribe })],
  unsubscribe: ['resources/unsubscribe', step => client.unsubscribeResource({ uri: step.unsubscribe })],
  level: ['logging/setLevel', step => {
    level = step.level;
    return legacy() ? client.setLoggingLevel(level) : {};
  }],
  ping: ['ping', () => client.ping()],
  listen: ['subscriptions/listen', async step => {
    if (legacy()) {
      for (const uri of step.listen.resourceSubscriptions ?? []) await client.subscribeResource({ uri });
    } else {
      open.set(step.as, await client.listen(step.listen));
    }
    return {};
  }],
  unlisten: ['unlisten', async step => {
    await open.get(step.unlisten)?.close();
    return {};
  }],
  watch: ['watch', async step => {
    const end = Date.now() + (step.timeout ?? 10_000);
    for (;;) {
      const at = wire.findIndex(({ from, message }, index) => index >= told && from === 'server' && message.method === step.watch);
      if (at >= 0) {
        told = at + 1;
        return { method: step.watch, params: wire[at].message.params };
      }
      if (Date.now() > end) throw new Error(`no ${step.watch} came`);
      await sleep(10);
    }
  }],
  wait: ['wait', step => sleep(step.wait)],
  roots: ['notifications/roots/list_changed', step => {
    answers.roots = step.roots;
    return client.sendRootsListChanged();
  }],
};

function tell(line) {
  console.log(JSON.stringify(line));
  if (!line.ok) process.exitCode = 1;
}

async function perform(step) {
  const kind = Object.keys(kinds).find(key => key in step);
  if (!kind) return tell({ unsupported: JSON.stringify(step) });
  const [name, action] = kinds[kind];
  const from = wire.length;
  const abort = new AbortController();
  const line = { step: name === 'list' ? `${{ templates: 'resources/templates' }[step.list] ?? step.list}/list` : name, ...step.as && { as: step.as } };
  if (typeof step.cancel === 'number') setTimeout(() => abort.abort('given up'), step.cancel);
  const onprogress = () => {
    if (step.cancel === 'progress') abort.abort('given up');
  };
  try {
    const result = await action(step, {
      timeout: step.timeout ?? plan.timeout ?? 30_000,
      ...(step.progress || step.cancel === 'progress') && { onprogress },
      ...step.cancel !== undefined && { signal: abort.signal },
    });
    Object.assign(line, { ok: true }, kind === 'watch' ? result : { result: result ?? {} });
  } catch (error) {
    if (/Unsupported result type 'task'/.test(error.message)) return tell({ ...line, ok: true, unsupported: error.message });
    Object.assign(line, { ok: false, error: error.message ?? `${error}`, ...Number.isInteger(error.code) && { code: error.code } });
  }
  const progress = seen(from, 'notifications/progress').map(({ progress }) => progress);
  const logs = seen(from, 'notifications/message');
  tell({ ...line, ...step.progress && { progress }, ...logs.length && { logs } });
}

try {
  await client.connect(transport);
  tell({ step: 'connect', ok: true, result: { version: client.getNegotiatedProtocolVersion(), server: client.getServerVersion(), capabilities: client.getServerCapabilities() } });
  const background = [];
  for (const step of plan.steps) {
    const done = perform(step);
    if (step.background) background.push(done);
    else await done;
  }
  await Promise.all(background);
  await client.close();
} catch (error) {
  tell({ step: 'connect', ok: false, error: error.message ?? `${error}` });
}
if (process.env.MCP_WIRE) for (const { from, message } of wire) console.error(`${from === 'client' ? '->' : '<-'} ${JSON.stringify(message)}`);
process.exit();
