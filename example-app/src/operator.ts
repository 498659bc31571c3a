import { Router } from 'express';
import type { Strategy } from 'passport-oauth-app';
import { type AccountGrants, grantsPage } from './pages/grants.js';

/**
 * Returns the routes of the operator: all grants, and a button that logs an account out everywhere. Put your own check of who
 * the operator is in front of them.
 */
export function operatorRoutes(strategy: Strategy): Router {
  const routes = Router();
  routes.get('/grants', async (req, res) => {
    res.send(await grantsPage(req, res, await accountsOf(strategy)));
  });
  routes.post('/grants/:account/end', async (req, res) => {
    const { grants = [] } = (await accountsOf(strategy)).find(({ account }) => account === req.params.account) ?? {};
    await strategy.deleteGrant(grants.map(({ grantId }) => grantId));
    res.redirect(303, '/grants');
  });
  return routes;
}

/** Lists the grants by account: each login of an account has its own. */
async function accountsOf(strategy: Strategy): Promise<readonly AccountGrants[]> {
  const accounts = new Map<string, AccountGrants['grants']>();
  for await (const grant of strategy.grants()) {
    const account = grant.subject ?? 'unknown';
    accounts.set(account, [...(accounts.get(account) ?? []), grant]);
  }
  return [...accounts].sort().map(([account, grants]) => ({ account, grants }));
}
