// @modelcontextprotocol/server-everything as it is published, on a free port of the loopback interface:
// node everything.mjs stdio|streamableHttp|sse
import '../loopback.mjs';
import net from 'node:net';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const path = { streamableHttp: '/mcp', sse: '/sse' }[process.argv[2]];
if (path) {
  process.env.PORT = '0';
  const listen = net.Server.prototype.listen;
  net.Server.prototype.listen = function (...args) {
    this.once('listening', () => console.error(`listening on http://127.0.0.1:${this.address().port}${path}`));
    return listen.apply(this, args);
  };
}
const program = join(process.env.MCP_PEERS, 'node_modules/@modelcontextprotocol/server-everything/dist/index.js');
await import(pathToFileURL(program));
