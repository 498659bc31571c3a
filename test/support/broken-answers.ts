import { gzipSync } from 'node:zlib';
import { answer, type Behaviour, head } from './faulty-server.js';

const JSON_TYPE = { 'content-type': 'application/json' };

/** A page of a proxy, where JSON is expected. */
export const html = (status = 200): Behaviour =>
  answer(status, { 'content-type': 'text/html; charset=utf-8' }, '<!doctype html><title>Gateway</title>');

/** JSON by its type, but not by its text. */
export const badJson = (text = '{"data": [', status = 200): Behaviour => answer(status, JSON_TYPE, text);

/** The connection is closed in good order, with no answer. */
export const hangUp = (): Behaviour => (socket) => void socket.end();

/** Headers, then one byte each `everyMs`, for ever. */
export function drip(everyMs = 10, length = 1_000_000): Behaviour {
  return (socket) => {
    socket.write(head(200, { ...JSON_TYPE, 'content-length': String(length) }));
    const timer = setInterval(() => socket.write(' '), everyMs);
    socket.on('close', () => clearInterval(timer));
  };
}

/** Less body than announced, then the end of the connection. */
export const truncated = (): Behaviour => (socket) =>
  void socket.end(`${head(200, { ...JSON_TYPE, 'content-length': '1000' })}{"data": [`);

/** For each request a body of `bytes` zeros without its length announced, written as fast as it is taken. `sent` counts what was written for all. */
export function huge(bytes: number, sent: { bytes: number } = { bytes: 0 }): Behaviour {
  return (socket) => {
    socket.write(head(200, { ...JSON_TYPE, 'transfer-encoding': 'chunked' }));
    const chunk = Buffer.alloc(64 * 1024, '0');
    let written = 0;
    const write = () => {
      while (written < bytes && !socket.destroyed) {
        written += chunk.length;
        sent.bytes += chunk.length;
        socket.write(`${chunk.length.toString(16)}\r\n`);
        socket.write(chunk);
        if (!socket.write('\r\n')) return void socket.once('drain', write);
      }
      if (!socket.destroyed) socket.write('0\r\n\r\n');
    };
    write();
  };
}

/** A body that grows to so many megabytes when it is decoded, each a member of its own. */
export function gzipBomb(megabytes: number): Behaviour {
  const members = Array<Buffer>(megabytes).fill(gzipSync(Buffer.alloc(1024 * 1024), { level: 9 }));
  return answer(200, { ...JSON_TYPE, 'content-encoding': 'gzip' }, Buffer.concat(members));
}

/** Compressed twice. */
export const chainedEncodings = (): Behaviour =>
  answer(200, { ...JSON_TYPE, 'content-encoding': 'gzip, gzip' }, gzipSync(gzipSync('{}')));
