import type { RequestListener, ServerResponse } from "node:http";
import type { Socket } from "node:net";

/** Requests that may wait on a connection for the answers before them. A caller that pipelines more is disconnected. */
export const pipelinedMax = 8;

/** How many requests wait on a connection. */
const waiting = new WeakMap<Socket, number>();

/**
 * Handles the requests of a connection one after the other. Node emits pipelined requests as soon as it has read them, and
 * keeps what is written to their responses in memory until their turn comes; even a response that was destroyed meanwhile
 * would still be sent. Here a request begins once the answer before it was sent and its own response has the socket. A
 * request that still waits when its connection ends never begins.
 */
export function oneAtATime(listener: RequestListener): RequestListener {
  return (request, response) => {
    const { socket } = request;
    if (socket.destroyed) return;
    if (hasSocket(response)) listener(request, response);
    else if (count(socket, 1) > pipelinedMax) socket.destroy();
    else {
      response.once("socket", () => {
        count(socket, -1);
        // In a turn of its own, after the end of the answer before it.
        process.nextTick(() => {
          if (socket.writable) listener(request, response);
        });
      });
    }
  };
}

// The types of Node do not say that a response has no socket before its turn.
const hasSocket = ({ socket }: Pick<ServerResponse, "socket">): boolean => socket !== null;

function count(socket: Socket, change: number): number {
  const requests = (waiting.get(socket) ?? 0) + change;
  waiting.set(socket, requests);
  return requests;
}
