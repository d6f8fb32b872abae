// The 2.x TypeScript client as client of the fixture server, over stdio; over HTTP if the command
// has the argument `--http`.
//
//   node sdk-2.mjs legacy|modern|auto REVISION -- COMMAND [ARGS…]
//
// `modern` pins the revision, `auto` lets the client find it out, `legacy` shakes hands as the 1.x releases do. MCP_PEERS
// names the folder that holds node_modules.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { arguments_, run, serve, tap } from './steps.mjs';

const { options: [mode, revision], command, args } = arguments_();
const require = createRequire(join(process.env.MCP_PEERS, 'package.json'));
const { Client, StreamableHTTPClientTransport } = require('@modelcontextprotocol/client');
const { StdioClientTransport } = require('@modelcontextprotocol/client/stdio');

const answers = { rootsAsked: 0 };
const errors = [];
const updates = [];
const changes = [];
const client = new Client({ name: 'peer-sdk-2', version: '1.0.0' }, {
  capabilities: { elicitation: { form: {} }, sampling: {}, roots: {} },
  versionNegotiation: { mode: mode === 'modern' ? { pin: revision } : mode },
});
client.onerror = error => errors.push(error);
client.setRequestHandler('elicitation/create', async request => answers.elicit(request.params));
client.setRequestHandler('sampling/createMessage', async request => answers.sample(request.params));
client.setRequestHandler('roots/list', async () => {
  answers.rootsAsked += 1;
  return { roots: [{ uri: 'file:///srv/project', name: 'project' }] };
});
client.setNotificationHandler('notifications/resources/updated', async ({ params }) => { updates.push(params.uri); });
client.setNotificationHandler('notifications/tools/list_changed', async () => { changes.push('tools'); });
client.setNotificationHandler('notifications/prompts/list_changed', async () => { changes.push('prompts'); });

const server = args.includes('--http') ? await serve(command, args) : undefined;
const transport = server
  ? new StreamableHTTPClientTransport(server.url)
  : new StdioClientTransport({ command, args, stderr: 'inherit', env: process.env });
const wire = tap(transport);
let child;

async function listen(filter) {
  const subscription = await client.listen(filter);
  assert.deepEqual(subscription.honoredFilter, filter, 'the filter that the server acknowledged');
  return () => subscription.close();
}

await run({
  label: `client-2 ${mode} ${revision}${server ? ' http' : ''}`,
  era: mode === 'legacy' ? 'legacy' : 'modern',
  revision,
  wire, errors, answers, updates, changes,
  process: () => child,
  url: server?.url,
  negotiated: () => client.getNegotiatedProtocolVersion(),
  connect: async () => {
    await client.connect(transport);
    child = transport._process;
  },
  close: () => client.close(),
  ping: () => client.ping(),
  tools: async () => (await client.listTools()).tools,
  resources: async () => (await client.listResources()).resources,
  templates: async () => (await client.listResourceTemplates()).resourceTemplates,
  prompts: async () => (await client.listPrompts()).prompts,
  call: (name, parameters, { _meta, ...options } = {}) => client.callTool({ name, arguments: parameters, ...(_meta && { _meta }) }, options),
  read: uri => client.readResource({ uri }),
  prompt: (name, parameters) => client.getPrompt({ name, arguments: parameters }),
  complete: (ref, argument) => client.complete({ ref, argument }),
  logLevel: level => client.setLoggingLevel(level),
  subscribe: async uri => {
    if (mode === 'legacy') {
      await client.subscribeResource({ uri });
      return () => client.unsubscribeResource({ uri });
    }
    return listen({ resourceSubscriptions: [uri] });
  },
  listen,
});
