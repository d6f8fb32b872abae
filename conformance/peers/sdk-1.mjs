// One release of the 1.x TypeScript SDK as client of the fixture server, over stdio; over HTTP if the command
// has the argument `--http`.
//
//   node sdk-1.mjs PACKAGE REVISION -- COMMAND [ARGS…]
//
// PACKAGE is a name in package.json (several releases are installed side by side), REVISION what that release must
// negotiate. MCP_PEERS names the folder that holds node_modules.
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { arguments_, run, serve, tap } from './steps.mjs';

const { options: [name, revision], command, args } = arguments_();
const require = createRequire(join(process.env.MCP_PEERS, 'package.json'));
const { Client } = require(`${name}/client/index.js`);
const { StdioClientTransport } = require(`${name}/client/stdio.js`);
const schemas = require(`${name}/types.js`);

const answers = { rootsAsked: 0 };
const errors = [];
const updates = [];
const changes = [];
const capabilities = { sampling: {}, roots: {} };
if (schemas.ElicitRequestSchema) capabilities.elicitation = {};
const client = new Client({ name: 'peer-sdk-1', version: '1.0.0' }, { capabilities });
client.onerror = error => errors.push(error);
client.setRequestHandler(schemas.CreateMessageRequestSchema, async request => answers.sample(request.params));
client.setRequestHandler(schemas.ListRootsRequestSchema, async () => {
  answers.rootsAsked += 1;
  return { roots: [{ uri: 'file:///srv/project', name: 'project' }] };
});
if (schemas.ElicitRequestSchema) {
  client.setRequestHandler(schemas.ElicitRequestSchema, async request => answers.elicit(request.params));
}
client.setNotificationHandler(schemas.ResourceUpdatedNotificationSchema, async ({ params }) => { updates.push(params.uri); });
client.setNotificationHandler(schemas.ToolListChangedNotificationSchema, async () => { changes.push('tools'); });
client.setNotificationHandler(schemas.PromptListChangedNotificationSchema, async () => { changes.push('prompts'); });

const server = args.includes('--http') ? await serve(command, args) : undefined;
// The oldest revision has a transport of its own, at a URL of its own.
const overHttp = url => revision === '2024-11-05'
  ? new (require(`${name}/client/sse.js`).SSEClientTransport)(new URL('/sse', url))
  : new (require(`${name}/client/streamableHttp.js`).StreamableHTTPClientTransport)(url);
const transport = server
  ? overHttp(server.url)
  : new StdioClientTransport({ command, args, stderr: 'inherit', env: process.env });
const wire = tap(transport);
let child;

async function pages(method, member) {
  const all = [];
  let cursor;
  for (let page = 0; page < 64; page += 1) {
    const result = await client[method](cursor === undefined ? {} : { cursor });
    all.push(...result[member]);
    if (result.nextCursor === undefined) return all;
    cursor = result.nextCursor;
  }
  throw new Error(`${method}: expected the last page within 64, got another cursor ${JSON.stringify(cursor)}`);
}

await run({
  label: `${name} ${revision}${server ? ' http' : ''}`,
  era: 'legacy',
  revision,
  wire, errors, answers, updates, changes,
  process: () => child,
  url: server?.url,
  connect: async () => {
    await client.connect(transport);
    child = transport._process;
  },
  close: () => client.close(),
  ping: () => client.ping(),
  tools: () => pages('listTools', 'tools'),
  resources: () => pages('listResources', 'resources'),
  templates: () => pages('listResourceTemplates', 'resourceTemplates'),
  prompts: () => pages('listPrompts', 'prompts'),
  call: (tool, parameters, options) => client.callTool({ name: tool, arguments: parameters }, undefined, options),
  read: uri => client.readResource({ uri }),
  prompt: (prompt, parameters) => client.getPrompt({ name: prompt, arguments: parameters }),
  complete: (ref, argument) => client.complete({ ref, argument }),
  logLevel: level => client.setLoggingLevel(level),
  subscribe: async uri => {
    await client.subscribeResource({ uri });
    return () => client.unsubscribeResource({ uri });
  },
});
