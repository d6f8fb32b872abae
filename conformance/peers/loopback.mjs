// Preloaded into programs of others that would listen on all interfaces: their servers listen on the loopback interface.
import dns from "node:dns";
import net from "node:net";

// The address is no name to be looked up: a server that was told to listen without one listens at once, and its owner may ask
// for its port right after. That must stay so.
const lookup = dns.lookup;
dns.lookup = function (host, options, callback) {
  const done = callback ?? options;
  if (host !== "127.0.0.1" || typeof done !== "function") return lookup.apply(this, arguments);
  return options?.all ? done(null, [{ address: host, family: 4 }]) : done(null, host, 4);
};

const listen = net.Server.prototype.listen;
net.Server.prototype.listen = function (...args) {
  // A port may be text, as it comes from the environment.
  const port = typeof args[0] === "number" || (typeof args[0] === "string" && /^[0-9]+$/.test(args[0]));
  if (port && typeof args[1] !== "string") args.splice(1, 0, "127.0.0.1");
  else if (typeof args[0] === "object" && args[0] !== null && "port" in args[0] && !args[0].host) args[0] = { ...args[0], host: "127.0.0.1" };
  else if (typeof args[0] === "function" || args.length === 0) args.unshift(0, "127.0.0.1");
  return listen.apply(this, args);
};
