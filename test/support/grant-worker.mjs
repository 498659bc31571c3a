// One process of an application that runs in several. It is the built package that runs here: Node 20 takes no TypeScript.
// Whoever asks is the user that the header x-user names; sessions are not what these tests are about.
import { createServer } from 'node:http';
import { apiClient, Strategy } from 'passport-oauth-app';
import { tenants } from 'passport-oauth-app/tenants';
import { Agent } from 'undici';
import { openStore } from './open-store.mjs';

let [aheadMs, attach, strategy, end, clientOf] = [0];

/** Begins as a process that has just started would, with this store and these options of the strategy. */
async function begin({ store, options }) {
  // Of a grant of the application, if the tests are about one.
  const { applicationParameters, tenant, ...others } = options;
  const agent = new Agent();
  // Tells the service which process sends a request.
  const identified = (dispatch) => (request, handler) =>
    dispatch({ ...request, headers: [...request.headers, 'x-process', String(process.pid)] }, handler);
  const { tokenStore, close } = await openStore(store);
  aheadMs = 0;
  const common = {
    ...{ callbackURL: 'http://127.0.0.1/callback', scope: 'project', tokenStore, grantId: (_req, user) => user.id },
    clock: () => Date.now() + aheadMs,
    // The package's own connections find *.localhost.
    dispatcher: tenant ? undefined : agent.compose(identified),
  };
  const applicationGrant = applicationParameters && (() => applicationParameters);
  const ofTenants = { name: 'shop', tenantOf: () => tenant, resolve: () => others };
  strategy = tenant
    ? tenants({ ...common, ...ofTenants, allowedHosts: [new URL(others.baseUrl).host] })
    : new Strategy({ ...others, ...common, applicationGrant });
  clientOf = ({ apiClient: attached, user: { id } }) =>
    tenant ? strategy.client({ tenant, grantId: id }) : applicationGrant ? strategy.client(id) : attached;
  if (store.memory) {
    const expiresAt = Date.now() + 3_600_000;
    await strategy.importGrant('1', { ...store.memory, refreshToken: 'unused', expiresAt });
  }
  attach = apiClient(strategy);
  end = async () => {
    await strategy.close();
    await close();
    await agent.destroy();
  };
}

await begin(JSON.parse(process.argv[2]));
// No kept connection ends under a request, however long the test was busy elsewhere.
const server = createServer({ keepAliveTimeout: 0 }, (req, res) => {
  req.user = { id: req.headers['x-user'] };
  attach(req, res, () => answer(req, res));
});
server.listen(0, '127.0.0.1', () => process.send({ port: server.address().port }));

process.on('message', async ({ id, advance, close, remove, isOver, again }) => {
  if (advance !== undefined) aheadMs += advance * 1000;
  if (remove !== undefined) await strategy.deleteGrant(remove);
  if (close) await strategy.close();
  if (isOver) await end();
  if (again) await begin(again);
  process.send({ id });
});
process.on('disconnect', () => process.exit());

async function answer(req, res) {
  try {
    const client = clientOf(req);
    await client.projects();
    res.end(await client.accessToken());
  } catch (error) {
    res.statusCode = error.status ?? 500;
    res.end(`${error.name} ${error.code}`);
  }
}
