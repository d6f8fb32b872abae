// Preloaded into programs of others that would listen on all interfaces: their servers listen on the loopback interface.
import net from "node:net";

const listen = net.Server.prototype.listen;
net.Server.prototype.listen = function (...args) {
  // A port may be text, as it comes from the environment.
  const port = typeof args[0] === "number" || (typeof args[0] === "string" && /^[0-9]+$/.test(args[0]));
  if (port && typeof args[1] !== "string") args.splice(1, 0, "127.0.0.1");
  else if (typeof args[0] === "object" && args[0] !== null && "port" in args[0] && !args[0].host) args[0] = { ...args[0], host: "127.0.0.1" };
  else if (typeof args[0] === "function" || args.length === 0) args.unshift(0, "127.0.0.1");
  return listen.apply(this, args);
};
