// What the exchanges ask of a server, as far as it does not depend on an SDK: contents, schemas, forms, texts.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';

export const require = createRequire(join(process.env.MCP_PEERS ?? '.', 'package.json'));

const contract = JSON.parse(readFileSync(new URL('../contract.json', import.meta.url)));

export const PNG = contract.png;
export const STATIC_TEXT = contract.staticText;
export const TONES = contract.tones;
export const ARG1 = contract.firstArguments;
export const LEVELS = contract.levels;
export const USERS = Array.from({ length: 150 }, (_, at) => `${at + 1}`);
// Tools that always give the same: name, description, result.
export const FIXED = Object.entries(contract.tools).map(([name, { description, result }]) => [name, description, result]);
export const ANNOTATED = contract.annotatedTool;
export const { everyKeyword: EVERY_KEYWORD, mirrored: MIRRORED, mirror: MIRROR } = contract.schemas;
export const { name: NAME, ok: OK, person: PERSON, defaults: DEFAULTS, choices: CHOICES, bounds: BOUNDS } = contract.forms;
export const WEATHER = contract.weather;

export const startsWith = (all, value) => all.filter(one => one.startsWith(value));
export const text = value => ({ content: [{ type: 'text', text: value }] });
export const failure = value => ({ ...text(value), isError: true });
export const structured = value => ({ ...text(JSON.stringify(value)), structuredContent: value });

const image = { type: 'image', data: PNG, mimeType: 'image/png' };
const embedded = (uri, mimeType, content) => ({ type: 'resource', resource: { uri, mimeType, text: content } });

export const form = (message, properties, required = Object.keys(properties)) => ({
  message, requestedSchema: { type: 'object', properties, required },
});
export const ask = (content, more = {}) => ({
  messages: [{ role: 'user', content: { type: 'text', text: content } }], maxTokens: 100, ...more,
});
// The texts of what a model said.
export const said = result => [result.content].flat().filter(block => block.type === 'text').map(block => block.text).join('\n');
// What a user did with a form, and entered.
export const did = answer => `action=${answer.action}, content=${JSON.stringify(answer.content ?? {})}`;

export const PROMPTS = {
  simple: 'This is a simple prompt for testing.',
  both: (arg1, arg2) => `Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`,
};
export const said_by_user = content => ({ role: 'user', content: typeof content === 'string' ? { type: 'text', text: content } : content });
export const PROMPT_IMAGE = [said_by_user(image), said_by_user('Please analyze the image above.')];
export const promptResource = uri => [
  said_by_user(embedded(uri, 'text/plain', 'Embedded resource content for testing.')),
  said_by_user('Please process the embedded resource above.'),
];
export const templateData = id => JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` });

// Where events are kept for streams that are resumed, as the SDKs want it.
export class Events {
  #all = [];

  async storeEvent(stream, message) {
    this.#all.push({ stream, message });
    return `${stream}/${this.#all.length}`;
  }

  async getStreamIdForEventId(id) {
    return this.#all[this.#at(id)]?.stream;
  }

  async replayEventsAfter(id, { send }) {
    const at = this.#at(id);
    const stream = this.#all[at]?.stream;
    if (stream === undefined) throw new Error('unknown event');
    for (let later = at + 1; later < this.#all.length; later += 1) {
      const { stream: of, message } = this.#all[later];
      // What primed the stream is no message.
      if (of === stream && Object.keys(message).length > 0) await send(`${stream}/${later + 1}`, message);
    }
    return stream;
  }

  #at(id) {
    return Number(id.slice(id.lastIndexOf('/') + 1)) - 1;
  }
}
