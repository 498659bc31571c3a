const emulator = process.env.EMULATOR_URL ?? 'http://127.0.0.1:4000';
const callback = 'http://localhost:3000/callback';
const client = { client_id: 'sample-client-id', client_secret: 'sample-client-secret' };

const control = (method, path, body) =>
  fetch(`${emulator}/_emulator/${path}`, { method, body: JSON.stringify(body) }).then((response) => response.json());

const token = (fields) =>
  fetch(`${emulator}/oauth/token`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ ...client, ...fields }),
  });

async function logIn(user) {
  const { client_id } = client;
  const request = { client_id, redirect_uri: callback, response_type: 'code', scope: 'project' };
  const form = new URLSearchParams({ ...request, user, decision: 'approve' });
  const answer = await fetch(`${emulator}/oauth/authorize`, { method: 'POST', body: form, redirect: 'manual' });
  const code = new URL(answer.headers.get('location')).searchParams.get('code');
  return (await token({ grant_type: 'authorization_code', redirect_uri: callback, code })).json();
}

beforeEach(() => control('POST', 'reset'));

test('a refresh fails during an outage, works after it, and is refused after a revocation', async () => {
  const { refresh_token } = await logIn('1');
  await control('POST', 'faults', { endpoint: 'token', status: 503 });
  expect((await token({ grant_type: 'refresh_token', refresh_token })).status).toBe(503);
  const next = await (await token({ grant_type: 'refresh_token', refresh_token })).json();
  await control('POST', 'revoke', { userId: '1' });
  expect((await token({ grant_type: 'refresh_token', refresh_token: next.refresh_token })).status).toBe(400);
  expect(await control('GET', 'requests')).toHaveLength(5);
});
