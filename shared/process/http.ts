/** Node's HTTP server. An `import` of the module would also load its WebSocket client: 45 ms of CPU at each start. */
export const { createServer, STATUS_CODES } = process.getBuiltinModule("node:http");
