import express from 'express';
import { headerUser } from './common.mjs';

const LIFETIME_MS = 7_200_000;

/**
 * The application of keyed.mjs without the package: its tokens lie in a plain `Map` by user. What a request takes here more with a
 * million entries than with a thousand is the price of a large heap alone.
 */
export function createApp() {
  const tokens = new Map();
  const app = express();
  app.use(headerUser);
  app.get('/', async (req, res) => {
    await freshToken(tokens.get(req.user));
    res.json({ user: req.user });
  });
  return { handler: app, tasks: { seed: (range) => seed(tokens, range) } };
}

async function freshToken({ accessToken, expiresAt }) {
  if (expiresAt < Date.now()) throw new Error('The token has expired');
  return accessToken;
}

/** @param {{ from: number, to: number, chars: number }} range `chars`: of each entry, so that the heap is as large as it is to be */
function seed(tokens, { from, to, chars }) {
  const rest = 's'.repeat(chars);
  const expiresAt = Date.now() + LIFETIME_MS;
  for (let user = from; user <= to; user += 1) {
    // As text that came over the wire: a flat string of its own for each user.
    const accessToken = Buffer.from(`${user}.${rest}`, 'latin1').toString('latin1');
    tokens.set(String(user), { accessToken, refreshToken: `${user}.1`, expiresAt });
  }
}
