// A small server on the TypeScript SDK 2, in both eras: node typescript.mjs --stdio | --http | --stateless
//
// --http keeps sessions for clients of the legacy era. --stateless is what the SDK does when it is left alone: no session
// and no stream of one, so nothing can be asked of a legacy client.
import { randomBytes, randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const require = createRequire(join(process.env.MCP_PEERS ?? '.', 'package.json'));
const {
  McpServer, ResourceTemplate, completable, createMcpHandler, createRequestStateCodec, inputRequired, inputResponse, isLegacyRequest,
} = require('@modelcontextprotocol/server');
const { serveStdio } = require('@modelcontextprotocol/server/stdio');
const { NodeStreamableHTTPServerTransport, toNodeHandler, toWebRequest } = require('@modelcontextprotocol/node');
const z = require('zod');

const TONES = ['formal', 'friendly', 'frank'];
const USERS = ['ada', 'alan', 'grace'];
const state = createRequestStateCodec({ key: randomBytes(32) });
let ran = 0;
let stopped = 0;
let touched = 0;
// Legacy sessions with what they subscribed to; for the modern era the SDK keeps that.
const sessions = new Map();
let publish = () => {};

const text = value => ({ content: [{ type: 'text', text: typeof value === 'string' ? value : JSON.stringify(value) }] });
const structured = value => ({ ...text(value), structuredContent: value });
// What a legacy client is asked first stands in the state when it is asked next.
const QUESTIONS = [
  ['confirm', { type: 'boolean', title: 'Go ahead?' }],
  ['region', { type: 'string', title: 'Which region?' }],
];

function build({ era }) {
  const server = new McpServer(
    { name: 'typescript-small', version: '1.0.0' },
    {
      capabilities: { resources: { subscribe: true }, logging: {} },
      instructions: 'A server to try clients with.',
      requestState: { verify: state.verify },
    },
  );

  server.registerTool('echo', { description: 'Says it again', inputSchema: z.object({ text: z.string() }) }, args => text(args.text));
  server.registerTool(
    'add',
    { description: 'Adds', inputSchema: z.object({ a: z.number(), b: z.number() }), outputSchema: z.object({ sum: z.number() }) },
    ({ a, b }) => structured({ sum: a + b }),
  );
  server.registerTool('counter', { description: 'How many calls of slow ran and were stopped' }, () => structured({ ran, stopped }));
  server.registerTool(
    'slow',
    { description: 'Waits, with progress', inputSchema: z.object({ ms: z.int().meta({ 'x-mcp-header': 'Ms' }) }) },
    async ({ ms }, ctx) => {
      ran += 1;
      const progressToken = ctx.mcpReq._meta?.progressToken;
      try {
        for (let step = 0; step <= 4; step += 1) {
          if (progressToken !== undefined) {
            await ctx.mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress: step, total: 4 } });
          }
          if (step < 4) await sleep(ms / 4, undefined, { signal: ctx.mcpReq.signal });
        }
      } catch (error) {
        if (ctx.mcpReq.signal.aborted) stopped += 1;
        throw error;
      }
      return text(`waited ${ms} ms`);
    },
  );
  server.registerTool('touch', { description: 'Changes config://app' }, async () => {
    touched += 1;
    await publish('config://app');
    for (const [session, uris] of sessions) {
      if (uris.has('config://app')) await session.server.sendResourceUpdated({ uri: 'config://app' }).catch(() => {});
    }
    return text(`touched ${touched} times`);
  });
  server.registerTool(
    'deploy',
    { description: 'Asks twice', inputSchema: z.object({ env: z.string().meta({ 'x-mcp-header': 'Env' }) }) },
    async ({ env }, ctx) => {
      const answers = { ...(ctx.mcpReq.requestState()?.answers ?? {}) };
      for (const [key, schema] of QUESTIONS) {
        if (key in answers) continue;
        const view = inputResponse(ctx.mcpReq.inputResponses, key);
        if (view.kind === 'elicit') {
          if (view.action !== 'accept') return { ...text(`${key}: ${view.action}`), isError: true };
          answers[key] = view.content[key];
          continue;
        }
        return inputRequired({
          inputRequests: {
            [key]: inputRequired.elicit({
              message: `Deploy to ${env}: ${schema.title}`,
              requestedSchema: { type: 'object', properties: { [key]: schema }, required: [key] },
            }),
          },
          requestState: await state.mint({ answers }),
        });
      }
      return text(`Deploy to ${env}: confirm=${answers.confirm}, region=${answers.region}`);
    },
  );

  server.registerResource('config', 'config://app', { mimeType: 'application/json' }, uri => ({
    contents: [{ uri: uri.href, mimeType: 'application/json', text: JSON.stringify({ touched }) }],
  }));
  server.registerResource(
    'user',
    new ResourceTemplate('users://{id}', { list: undefined, complete: { id: value => USERS.filter(id => id.startsWith(value)) } }),
    { mimeType: 'text/plain' },
    (uri, { id }) => ({ contents: [{ uri: uri.href, mimeType: 'text/plain', text: `user ${id}` }] }),
  );
  server.registerPrompt(
    'greet',
    {
      description: 'Greets',
      argsSchema: z.object({ tone: completable(z.string(), value => TONES.filter(tone => tone.startsWith(value))) }),
    },
    ({ tone }) => ({ messages: [{ role: 'user', content: { type: 'text', text: `Greet me in a ${tone} tone.` } }] }),
  );

  if (era === 'legacy') {
    const uris = new Set();
    sessions.set(server, uris);
    server.server.setRequestHandler('resources/subscribe', ({ params }) => (uris.add(params.uri), {}));
    server.server.setRequestHandler('resources/unsubscribe', ({ params }) => (uris.delete(params.uri), {}));
    server.server.onclose = () => sessions.delete(server);
  }
  return server;
}

async function http(keep) {
  const handler = createMcpHandler(build, { legacy: keep ? 'reject' : 'stateless' });
  const serve = toNodeHandler(handler);
  publish = uri => handler.notify.resourceUpdated(uri);
  const transports = new Map();

  const legacy = async (req, res, body) => {
    const id = req.headers['mcp-session-id'];
    if (id !== undefined) {
      const transport = transports.get(id);
      if (transport) return transport.handleRequest(req, res, body);
      res.writeHead(404, { 'content-type': 'application/json' });
      return res.end('{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}');
    }
    const transport = new NodeStreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: name => void transports.set(name, transport),
      onsessionclosed: name => void transports.delete(name),
    });
    await build({ era: 'legacy' }).connect(transport);
    return transport.handleRequest(req, res, body);
  };
  const listener = createServer(async (req, res) => {
    try {
      if (!keep) return await serve(req, res);
      const chunks = [];
      for await (const chunk of req) chunks.push(chunk);
      const body = chunks.length ? JSON.parse(Buffer.concat(chunks)) : undefined;
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
    if (context.era === 'modern') publish = uri => instance.server.sendResourceUpdated({ uri });
    return instance;
  });
} else if (process.argv[2] === '--http') {
  await http(true);
} else if (process.argv[2] === '--stateless') {
  await http(false);
} else {
  console.error('expected --stdio, --http or --stateless');
  process.exit(2);
}
