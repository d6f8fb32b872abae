// The Inspector's command line as client of the fixture server, over stdio: each step is a run of its own, with a server
// of its own; over HTTP, if the command has the argument `--http`, all with one server.
//
//   node inspector.mjs legacy|modern REVISION -- COMMAND [ARGS…]
//
// MCP_PEERS names the folder that holds node_modules.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { arguments_, serve } from './steps.mjs';

const { options: [era, revision], command, args } = arguments_();
const program = join(process.env.MCP_PEERS, 'node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js');
// The Inspector keeps files in the home directory; none of the user's are read or written.
const home = mkdtempSync(join(tmpdir(), 'inspector-'));
const server = args.includes('--http') ? await serve(command, args) : undefined;
const target = server ? ['--server-url', server.url.href] : ['--', command, ...args];
const label = `inspector ${era} ${revision}${server ? ' http' : ''}`;
let passed = 0;
let failed = 0;

function inspect(...options) {
  const run = spawnSync(process.execPath, [program, '--cli', '--protocol-era', era, '--format', 'json', ...options, ...target], {
    encoding: 'utf8', env: { ...process.env, HOME: home }, stdio: ['ignore', 'pipe', 'pipe'], timeout: 60_000, killSignal: 'SIGKILL',
  });
  assert.equal(run.error, undefined, `${run.error}`);
  return run;
}

function result(...options) {
  const { status, stdout, stderr } = inspect(...options);
  assert.equal(status, 0, `exit status of ${options.join(' ')}; output: ${stdout}${stderr}`);
  return JSON.parse(stdout).result;
}

function step(name, body) {
  try {
    const note = body();
    passed += 1;
    console.log(`ok   ${label}: ${name}${note ? ` (${note})` : ''}`);
  } catch (error) {
    failed += 1;
    console.log(`FAIL ${label}: ${name}: ${error.message}`);
  }
}

const call = (tool, parameters, ...more) => result('--method', 'tools/call', '--tool-name', tool, '--tool-args-json', JSON.stringify(parameters), ...more);
const has = (list, member, value) => assert.ok(list.some(item => item[member] === value), `expected ${value}, got ${list.map(item => item[member])}`);

step('connect', () => {
  const connection = result('--method', 'initialize');
  assert.equal(connection.protocolVersion, revision);
  assert.ok(connection.serverInfo.name.length > 0);
  return `revision ${connection.protocolVersion}`;
});
step('list tools', () => {
  const { tools } = result('--method', 'tools/list');
  for (const name of ['echo', 'add', 'slow', 'deploy']) has(tools, 'name', name);
  return `${tools.length}`;
});
step('list resources', () => has(result('--method', 'resources/list').resources, 'uri', 'config://app'));
step('list resource templates', () => has(result('--method', 'resources/templates/list').resourceTemplates, 'uriTemplate', 'users://{id}'));
step('list prompts', () => has(result('--method', 'prompts/list').prompts, 'name', 'greet'));
step('call', () => {
  assert.equal(call('echo', { text: 'h\u00e9llo \u2713' }).content[0].text, 'h\u00e9llo \u2713');
  assert.deepEqual(call('add', { a: 2, b: 40 }).structuredContent, { sum: 42 });
});
step('call: a tool error is a result', () => {
  const { status, stdout, stderr } = inspect('--method', 'tools/call', '--tool-name', 'test_error_handling');
  assert.notEqual(status, 0);
  assert.match(stdout + stderr, /intentionally returns an error/);
});
step('call: progress', () => {
  assert.ok(call('test_tool_with_progress', {}, '--metadata', 'progressToken=inspector').content.length > 0);
});
step('call: many at once', () => {
  const load = call('echo', { text: 'x' }, '--load', '--load-requests', '300', '--load-concurrency', '10');
  assert.deepEqual({ ok: load.ok, toolErrors: load.toolErrors, errors: load.errors }, { ok: 300, toolErrors: 0, errors: 0 });
});
step('read', () => {
  assert.equal(typeof result('--method', 'resources/read', '--uri', 'config://app').contents[0].text, 'string');
  assert.match(result('--method', 'resources/read', '--uri', 'users://42').contents[0].text, /42/);
});
step('read: what does not exist is an error', () => {
  const { status, stdout, stderr } = inspect('--method', 'resources/read', '--uri', 'test://nonexistent-resource-for-conformance-testing');
  assert.notEqual(status, 0, stdout);
  assert.match(stderr, /"error"/);
});
step('prompts', () => {
  const prompt = JSON.stringify(result('--method', 'prompts/get', '--prompt-name', 'test_prompt_with_arguments', '--prompt-args', 'arg1=one', 'arg2=two'));
  assert.ok(prompt.includes('one') && prompt.includes('two'), prompt);
});
if (era === 'legacy') step('logging', () => { result('--method', 'logging/setLevel', '--log-level', 'info'); });

rmSync(home, { recursive: true, force: true });
console.log(`${label}: ${passed} steps passed, ${failed} failed`);
process.exit(failed === 0 && passed > 0 ? 0 : 1);
