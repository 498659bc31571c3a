const HEAD_END = '\r\n\r\n';
const REASONS = { 200: 'OK', 400: 'Bad Request', 404: 'Not Found' };

/** An answer with a JSON text, as it goes over the wire. */
export function answerText(status, json) {
  return `HTTP/1.1 ${status} ${REASONS[status]}\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(json)}\r\n\r\n${json}`;
}

/**
 * Reads requests from a socket, one after the other, as keep-alive clients send them.
 *
 * @param {import('node:net').Socket} socket
 * @param {(request: { method: string, path: string, head: string, body: string }) => void} serve
 */
export function readRequests(socket, serve) {
  let received = '';
  socket.setEncoding('latin1');
  socket.on('error', () => {});
  socket.on('data', (text) => {
    received += text;
    for (;;) {
      const headEnd = received.indexOf(HEAD_END);
      if (headEnd < 0) return;
      const bodyStart = headEnd + HEAD_END.length;
      const bodyLength = received.startsWith('GET') ? 0 : lengthOf(received.slice(0, headEnd));
      if (received.length < bodyStart + bodyLength) return;
      const head = received.slice(0, headEnd);
      const body = received.slice(bodyStart, bodyStart + bodyLength);
      received = received.slice(bodyStart + bodyLength);
      const [method, path] = head.split(' ', 2);
      serve({ method, path, head, body });
    }
  });
}

function lengthOf(head) {
  return Number(/\r\ncontent-length: *(\d+)/i.exec(head)?.[1] ?? 0);
}
