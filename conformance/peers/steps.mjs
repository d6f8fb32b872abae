// What every JavaScript client does with the fixture server, whatever its SDK: one line a step, exit 1 when a step
// fails. An SDK joins by an adapter (see `run`); what the two eras do differently is asked of the adapter's `era`.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';

const META = 'io.modelcontextprotocol/';
const PATIENCE_MS = 20_000;
const ECHO = 'h\u00e9llo \u2713 \u{1d54f} "quoted" \\ line\nline\u2028end';

/** Rejects when `promise` has not settled in time: a peer that stays silent is a failure, not a hang. */
export function within(promise, what, ms = PATIENCE_MS) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`expected ${what} within ${ms} ms, got nothing`)), ms);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/** Records every message that passes a transport, in order, without changing it. */
export function tap(transport) {
  const wire = [];
  const send = transport.send.bind(transport);
  transport.send = (message, ...rest) => {
    wire.push({ from: 'client', message });
    return send(message, ...rest);
  };
  let deliver;
  Object.defineProperty(transport, 'onmessage', {
    configurable: true,
    get: () => deliver,
    set: handler => {
      deliver = handler && ((message, ...rest) => {
        wire.push({ from: 'server', message });
        return handler(message, ...rest);
      });
    },
  });
  return wire;
}

/** Command line: `OPTIONS -- COMMAND ARGS…`; the part after `--` starts the server. */
export function arguments_(argv = process.argv.slice(2)) {
  const cut = argv.indexOf('--');
  if (cut < 0 || cut === argv.length - 1) {
    console.error('expected: … -- COMMAND [ARGS…], got no command');
    process.exit(2);
  }
  return { options: argv.slice(0, cut), command: argv[cut + 1], args: argv.slice(cut + 2) };
}

/** Starts a server that says `listening on URL` on its standard error; resolves to its process and the URL. */
export function serve(command, args) {
  const child = spawn(command, args, { stdio: ['ignore', 'inherit', 'pipe'] });
  process.on('exit', () => child.kill());
  const said = new Promise((resolve, reject) => {
    createInterface({ input: child.stderr }).on('line', line => {
      const url = /^listening on (\S+)$/.exec(line)?.[1];
      if (url) resolve({ child, url: new URL(url) });
      else console.error(line);
    });
    child.on('error', reject);
    child.on('exit', code => reject(new Error(`expected the server to listen, but it ended with ${code}`)));
  });
  return within(said, 'the server to listen');
}

const textOf = result => (result.content ?? []).filter(block => block.type === 'text').map(block => block.text).join('\n');

async function rejection(promise, what) {
  let value;
  try {
    value = await within(promise, what);
  } catch (error) {
    return error;
  }
  assert.fail(`expected ${what}, got the result ${JSON.stringify(value)}`);
}

async function eventually(what, look) {
  const end = Date.now() + PATIENCE_MS;
  let seen;
  while (Date.now() < end) {
    seen = await look();
    if (seen.done) return seen;
    await new Promise(resolve => setTimeout(resolve, 20));
  }
  assert.fail(`expected ${what}, got ${JSON.stringify(seen)}`);
}

/**
 * Runs all steps against one connected server and ends the process.
 *
 * The adapter: `label`, `era` (`modern` or `legacy`), `revision`, `wire` (from `tap`), `errors` (an array that the SDK's
 * error callback fills), `answers` (`elicit` and `sample` are set by the steps,
 * `rootsAsked` counts), `updates` (URIs of resource
 * updates seen by the SDK's handler), `changes` (`tools` or `prompts`, one for each list change it saw), and functions `process` (the child, once connected; not over HTTP, where there is `url`), `negotiated` (modern era), `connect`, `close`, `tools`,
 * `resources`, `templates`, `prompts`, `call(name, args, options)`, `read`, `prompt`, `complete`, `subscribe(uri)` (resolves to a
 * function that ends the subscription), in the modern era `listen(filter)` (the same), in the legacy era `ping` and `logLevel`.
 * `options` of a call may hold `_meta`.
 */
export async function run(peer) {
  const modern = peer.era === 'modern';
  const since = revision => peer.revision >= revision;
  const fromServer = method => peer.wire.filter(w => w.from === 'server' && (!method || w.message.method === method));
  const fromClient = method => peer.wire.filter(w => w.from === 'client' && w.message.method === method);
  let failed = 0;
  let passed = 0;
  let position = 0;

  // A validator that finds fault with a schema says so here, in the logs of the user.
  console.warn = (...parts) => peer.errors.push(`warning: ${parts.join(' ')}`);

  async function step(name, body) {
    position = peer.wire.length;
    try {
      const note = await within(body(), `step "${name}" to end`, 2 * PATIENCE_MS);
      passed += 1;
      console.log(`ok   ${peer.label}: ${name}${note ? ` (${note})` : ''}`);
      return true;
    } catch (error) {
      failed += 1;
      console.log(`FAIL ${peer.label}: ${name}: ${error.message ?? error}`);
      for (const { from, message } of peer.wire.slice(position).slice(-12)) {
        console.log(`     ${from === 'client' ? '->' : '<-'} ${JSON.stringify(message).slice(0, 600)}`);
      }
      return false;
    }
  }
  const sinceStep = () => peer.wire.slice(position);
  // As the server sent it: some SDKs translate codes for their callers.
  const errorCode = () => sinceStep().filter(w => w.from === 'server').at(-1)?.message.error?.code;
  const counter = async () => {
    const result = await peer.call('counter', {});
    const counts = result.structuredContent ?? JSON.parse(textOf(result));
    for (const key of ['ran', 'stopped']) assert.equal(typeof counts[key], 'number', `counter.${key} of ${JSON.stringify(counts)}`);
    return counts;
  };

  const connected = await step('connect', async () => {
    await peer.connect();
    if (modern) {
      const discovery = fromServer().find(w => w.message.result?.supportedVersions)?.message.result;
      if (discovery) assert.ok(discovery.supportedVersions.includes(peer.revision), `supportedVersions: ${discovery.supportedVersions}`);
      assert.equal(peer.negotiated(), peer.revision, 'negotiated revision');
      assert.deepEqual(fromClient('initialize'), [], 'a modern client does not initialize');
    } else {
      const asked = fromClient('initialize').at(-1)?.message.params.protocolVersion;
      const given = fromServer().find(w => w.message.result?.protocolVersion)?.message.result;
      assert.equal(asked, peer.revision, 'revision asked for by the client');
      assert.equal(given?.protocolVersion, peer.revision, 'revision answered by the server');
      assert.equal(typeof given.serverInfo.name, 'string');
      assert.ok(given.serverInfo.version.length > 0, 'serverInfo.version');
    }
    return `revision ${peer.revision}`;
  });

  if (connected) {
    if (!modern) await step('ping', async () => { await peer.ping(); });

    await step('list tools', async () => {
      const names = (await peer.tools()).map(tool => {
        assert.equal(tool.inputSchema.type, 'object', `inputSchema.type of ${tool.name}`);
        return tool.name;
      });
      assert.equal(new Set(names).size, names.length, `names are unique: ${names}`);
      for (const name of ['echo', 'add', 'slow', 'counter', 'touch', 'deploy', 'test_simple_text', 'test_tool_with_progress']) {
        assert.ok(names.includes(name), `expected the tool ${name}, got ${names}`);
      }
      return `${names.length}`;
    });
    await step('list resources', async () => {
      const uris = (await peer.resources()).map(resource => resource.uri);
      assert.ok(uris.includes('config://app'), `expected config://app, got ${uris}`);
      return `${uris.length}`;
    });
    await step('list resource templates', async () => {
      const templates = (await peer.templates()).map(template => template.uriTemplate);
      assert.ok(templates.includes('users://{id}'), `expected users://{id}, got ${templates}`);
      return `${templates.length}`;
    });
    await step('list prompts', async () => {
      const prompts = await peer.prompts();
      const greet = prompts.find(prompt => prompt.name === 'greet');
      assert.ok(greet?.arguments?.some(argument => argument.name === 'tone'), `expected greet {tone}, got ${JSON.stringify(prompts)}`);
      return `${prompts.length}`;
    });

    await step('call: text comes back exactly', async () => {
      assert.equal(textOf(await peer.call('echo', { text: ECHO })), ECHO);
    });
    await step('call: many at once, each gets its own answer', async () => {
      const texts = Array.from({ length: 100 }, (_, index) => `${index} ${'x'.repeat(index)}`);
      const results = await Promise.all(texts.map(text => peer.call('echo', { text })));
      assert.deepEqual(results.map(textOf), texts);
    });
    await step('call: a message larger than any pipe', async () => {
      const text = '\u2713 longer '.repeat(100_000);
      assert.ok(textOf(await peer.call('echo', { text })) === text, 'expected the same text, got another');
    });
    await step('call: structured result', async () => {
      const result = await peer.call('add', { a: 2, b: 40 });
      assert.ok(!result.isError, JSON.stringify(result));
      if (since('2025-06-18')) assert.deepEqual(result.structuredContent, { sum: 42 });
      else assert.equal(result.structuredContent, undefined, 'structuredContent does not exist in this revision');
      assert.match(textOf(result), /42/);
    });
    await step('call: image content', async () => {
      const { content } = await peer.call('test_image_content', {});
      assert.equal(content[0].type, 'image');
      assert.equal(content[0].mimeType, 'image/png');
      assert.ok(Buffer.from(content[0].data, 'base64').length > 0);
    });
    await step('call: a tool error is a result', async () => {
      const result = await peer.call('test_error_handling', {});
      assert.equal(result.isError, true, JSON.stringify(result));
      assert.match(textOf(result), /intentionally returns an error/);
    });
    await step('call: an unknown tool is a protocol error', async () => {
      await rejection(peer.call('no-such-tool', {}), 'error -32602');
      assert.equal(errorCode(), -32602);
    });

    // Judged on the wire: in these SDKs the result removes the progress callback before queued notifications reach it.
    await step('progress', async () => {
      const result = await peer.call('test_tool_with_progress', {}, { onprogress: () => {} });
      assert.ok(textOf(result).length > 0, JSON.stringify(result));
      const request = sinceStep().find(w => w.message.method === 'tools/call').message;
      const token = request.params._meta.progressToken;
      const messages = sinceStep().filter(w => w.from === 'server').map(w => w.message);
      const answered = messages.findIndex(message => message.id === request.id && 'result' in message);
      const progress = messages.slice(0, answered).filter(message => message.method === 'notifications/progress').map(message => message.params);
      assert.ok(progress.every(params => params.progressToken === token), `token ${JSON.stringify(token)}: ${JSON.stringify(progress)}`);
      assert.deepEqual(progress.map(params => params.progress), [0, 50, 100], 'progress before the result');
      assert.ok(progress.every(params => params.total === 100), JSON.stringify(progress));
    });

    await step('cancel stops the call', async () => {
      const before = await counter();
      const abort = new AbortController();
      const call = peer.call('slow', { ms: 600_000 }, { signal: abort.signal, timeout: 900_000 });
      const settled = rejection(call, 'the cancelled call to reject');
      await eventually('the call to start', async () => {
        const now = await counter();
        return { ...now, done: now.ran === before.ran + 1 };
      });
      abort.abort('no longer needed');
      await settled;
      await eventually('the call to be stopped', async () => {
        const now = await counter();
        return { ...now, done: now.stopped === before.stopped + 1 };
      });
      const id = sinceStep().find(w => w.message.params?.name === 'slow').message.id;
      const cancelled = fromClient('notifications/cancelled').at(-1)?.message;
      // Over HTTP the end of the response says it.
      if (!(modern && peer.url)) assert.equal(cancelled?.params.requestId, id, 'the client announced the cancellation');
      assert.equal(textOf(await peer.call('echo', { text: 'alive' })), 'alive');
      const answers = sinceStep().filter(w => w.from === 'server' && w.message.id === id && !w.message.method);
      assert.deepEqual(answers, [], 'no answer to a cancelled request');
    });

    if (since('2025-06-18')) {
      await step(modern ? 'input required: two rounds' : 'elicitation: two questions', async () => {
        const asked = [];
        peer.answers.elicit = params => {
          const [key, ...more] = Object.keys(params.requestedSchema.properties);
          asked.push({ key, more, type: params.requestedSchema.properties[key].type, message: params.message });
          return { action: 'accept', content: { [key]: key === 'confirm' ? true : 'eu-west-3' } };
        };
        const result = await peer.call('deploy', { env: 'staging' });
        assert.deepEqual(asked.map(({ key, more, type }) => ({ key, more, type })), [
          { key: 'confirm', more: [], type: 'boolean' },
          { key: 'region', more: [], type: 'string' },
        ]);
        assert.ok(asked.every(question => question.message.length > 0), JSON.stringify(asked));
        assert.ok(!result.isError, JSON.stringify(result));
        for (const answer of ['staging', 'true', 'eu-west-3']) {
          assert.ok(textOf(result).includes(answer), `expected ${answer} in the text, got ${JSON.stringify(textOf(result))}`);
        }
        const calls = sinceStep().filter(w => w.from === 'client' && w.message.params?.name === 'deploy').map(w => w.message);
        const rounds = sinceStep().filter(w => w.from === 'server' && w.message.result?.resultType === 'input_required');
        const requests = sinceStep().filter(w => w.from === 'server' && w.message.method === 'elicitation/create');
        assert.equal(new Set(calls.map(call => call.id)).size, modern ? 3 : 1, 'tools/call requests, each with an id of its own');
        assert.equal(rounds.length, modern ? 2 : 0, 'input_required results');
        assert.equal(requests.length, modern ? 0 : 2, 'elicitation/create requests');
      });
      await step('a declined question ends the call', async () => {
        let asked = 0;
        peer.answers.elicit = () => {
          asked += 1;
          return { action: 'decline' };
        };
        const result = await peer.call('deploy', { env: 'staging' });
        assert.equal(result.isError, true, JSON.stringify(result));
        assert.equal(asked, 1, 'the second question is not asked');
      });
    } else {
      await step('a question that this revision does not have', async () => {
        let refused;
        try {
          refused = (await peer.call('deploy', { env: 'staging' })).isError === true;
        } catch (error) {
          refused = Number.isInteger(error.code) && error.code !== -32001;
        }
        assert.ok(refused, 'expected an error or a result with isError');
        assert.deepEqual(fromServer('elicitation/create'), [], 'nothing is asked');
      });
    }

    const sampled = [];
    peer.answers.sample = params => {
      sampled.push(params);
      return { role: 'assistant', model: 'none', stopReason: 'endTurn', content: { type: 'text', text: 'forty-two' } };
    };
    await step('sampling', async () => {
      const [tool, args] = modern ? ['test_input_required_result_sampling', {}] : ['test_sampling', { prompt: 'How many?' }];
      const result = await peer.call(tool, args);
      assert.equal(sampled.length, 1, 'sampling requests');
      assert.ok(sampled[0].maxTokens > 0 && sampled[0].messages.length > 0, JSON.stringify(sampled[0]));
      assert.match(textOf(result), /forty-two/);
    });
    if (modern) {
      peer.answers.elicit = params => ({
        action: 'accept',
        content: Object.fromEntries(Object.entries(params.requestedSchema.properties).map(([key, schema]) =>
          [key, schema.type === 'boolean' ? true : schema.type === 'string' ? 'Ada' : 7])),
      });
      await step('roots as input', async () => {
        const roots = peer.answers.rootsAsked;
        assert.ok(!(await peer.call('test_input_required_result_list_roots', {})).isError);
        assert.equal(peer.answers.rootsAsked, roots + 1);
      });
      await step('several questions in one round', async () => {
        assert.ok(!(await peer.call('test_input_required_result_multiple_inputs', {})).isError);
        const round = sinceStep().find(w => w.message.result?.resultType === 'input_required').message.result;
        assert.ok(Object.keys(round.inputRequests).length >= 3, JSON.stringify(round));
      });
      await step('state changes from round to round', async () => {
        assert.ok(!(await peer.call('test_input_required_result_multi_round', {})).isError);
        const given = sinceStep().map(w => w.message.result?.requestState).filter(Boolean);
        const echoed = sinceStep().map(w => w.message.params?.requestState).filter(Boolean);
        assert.equal(new Set(given).size, 2, `states given: ${given}`);
        assert.deepEqual(echoed, given, 'states echoed');
      });
    }

    await step('prompts', async () => {
      const simple = await peer.prompt('test_simple_prompt');
      assert.equal(simple.messages[0].content.text, 'This is a simple prompt for testing.');
      const filled = JSON.stringify(await peer.prompt('test_prompt_with_arguments', { arg1: 'one\u00e9', arg2: 'two' }));
      assert.ok(filled.includes('one\u00e9') && filled.includes('two'), filled);
      assert.ok((await peer.prompt('greet', { tone: 'formal' })).messages.length > 0);
      await rejection(peer.prompt('no-such-prompt'), 'error -32602');
      assert.equal(errorCode(), -32602);
    });
    await step('completion', async () => {
      const { completion } = await peer.complete({ type: 'ref/prompt', name: 'greet' }, { name: 'tone', value: '' });
      assert.ok(completion.values.length > 0 && completion.values.length <= 100, JSON.stringify(completion));
      const prefix = completion.values[0].slice(0, 2);
      const narrowed = await peer.complete({ type: 'ref/prompt', name: 'greet' }, { name: 'tone', value: prefix });
      assert.ok(narrowed.completion.values.includes(completion.values[0]), JSON.stringify(narrowed));
      const other = await peer.complete({ type: 'ref/prompt', name: 'test_prompt_with_arguments' }, { name: 'arg1', value: 'test' });
      assert.ok(Array.isArray(other.completion.values), JSON.stringify(other));
      return completion.values.join(', ');
    });
    await step('read', async () => {
      const { contents } = await peer.read('config://app');
      assert.equal(contents[0].uri, 'config://app');
      assert.equal(typeof contents[0].text, 'string');
      const user = (await peer.read('users://42')).contents[0];
      assert.equal(user.uri, 'users://42');
      assert.match(user.text, /42/);
    });
    await step('read: what does not exist is an error', async () => {
      await rejection(peer.read('test://nonexistent-resource-for-conformance-testing'), 'an error');
      assert.equal(errorCode(), modern ? -32602 : -32002);
    });

    await step('subscribe', async () => {
      const before = (await peer.read('config://app')).contents[0].text;
      const end = await peer.subscribe('config://app');
      const seen = peer.updates.length;
      await peer.call('touch', {});
      await eventually('notifications/resources/updated for config://app', async () => ({
        updates: peer.updates, done: peer.updates.slice(seen).includes('config://app'),
      }));
      assert.notEqual((await peer.read('config://app')).contents[0].text, before, 'the text after the update');
      if (modern) {
        const listen = fromClient('subscriptions/listen').at(-1).message.id;
        const tag = fromServer('notifications/resources/updated').at(-1).message.params._meta?.[`${META}subscriptionId`];
        assert.equal(tag, listen, 'subscriptionId is the id of the listen request');
      }
      await end();
      assert.equal(textOf(await peer.call('echo', { text: 'after' })), 'after');
      const settled = fromServer('notifications/resources/updated').length;
      await peer.call('touch', {});
      assert.equal(textOf(await peer.call('echo', { text: 'quiet' })), 'quiet');
      assert.equal(fromServer('notifications/resources/updated').length, settled, 'updates after the end of the subscription');
    });

    await step('list changes', async () => {
      const end = modern ? await peer.listen({ toolsListChanged: true }) : () => {};
      await peer.call('test_trigger_prompt_change', {});
      await peer.call('test_trigger_tool_change', {});
      const wanted = modern ? ['tools'] : ['prompts', 'tools'];
      await eventually(`changes of ${wanted}`, async () => ({ changes: peer.changes, done: peer.changes.length >= wanted.length }));
      assert.deepEqual([...peer.changes].sort(), wanted, 'changes of lists that were subscribed to');
      await end();
    });

    let logged = 0;
    await step('logging', async () => {
      if (modern) await peer.call('test_logging_tool', {}, { _meta: { [`${META}logLevel`]: 'warning' } });
      else {
        await peer.logLevel('warning');
        await peer.call('test_logging_tool', {});
      }
      const levels = fromServer('notifications/message').map(w => w.message.params.level);
      assert.deepEqual(levels, ['warning', 'error', 'critical', 'alert', 'emergency'], 'levels at or above the one asked for');
      logged = levels.length;
    });

    await step('every message was in order', async () => {
      const requests = new Set(peer.wire.filter(w => w.from === 'client' && w.message.method).map(w => w.message.id).filter(id => id !== undefined));
      const answered = new Set();
      for (const { message } of fromServer()) {
        assert.equal(message.jsonrpc, '2.0', JSON.stringify(message));
        if (message.method !== undefined) {
          assert.ok(!modern || message.id === undefined, `a modern server sends no requests: ${JSON.stringify(message)}`);
          continue;
        }
        assert.ok(requests.has(message.id), `answers a request that was made: ${JSON.stringify(message)}`);
        assert.ok(!answered.has(message.id), `answered once: ${JSON.stringify(message)}`);
        answered.add(message.id);
        if (message.result) assert.equal('resultType' in message.result, modern, `resultType: ${JSON.stringify(message.result)}`);
      }
      assert.equal(fromServer('notifications/message').length, logged, 'log messages beside those that were asked for');
      const unexpected = peer.errors.filter(error => !/progress notification for an unknown token/.test(`${error}`));
      assert.deepEqual(unexpected.map(String), [], 'errors reported by the SDK');
      return `${peer.wire.length} messages`;
    });

    if (!peer.url) await step('the server ends when its input ends', async () => {
      // A subscription that is still open is ended with its result, not cut off.
      if (modern) await peer.subscribe('config://app');
      const child = peer.process();
      const closed = once(child, 'close');
      child.stdin.end();
      const [code, signal] = await within(closed, 'the server to exit');
      assert.deepEqual({ code, signal }, { code: 0, signal: null });
      if (modern) {
        const { id } = fromClient('subscriptions/listen').at(-1).message;
        const { message } = fromServer().at(-1);
        assert.equal(message.id, id, `expected the result of the subscription last, got ${JSON.stringify(message)}`);
        assert.equal(message.result?._meta?.[`${META}subscriptionId`], id, JSON.stringify(message));
      }
    });
  }

  await within(Promise.resolve(peer.close()), 'the client to close').catch(error => {
    failed += 1;
    console.log(`FAIL ${peer.label}: close: ${error}`);
  });
  console.log(`${peer.label}: ${passed} steps passed, ${failed} failed`);
  process.exit(failed === 0 && passed > 0 ? 0 : 1);
}
