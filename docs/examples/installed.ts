import { randomUUID, timingSafeEqual } from 'node:crypto';
import express, { type Express, type Request, type RequestHandler, type Response } from 'express';
import { jwtVerify } from 'jose';
import { Strategy, type StrategyOptions } from 'passport-oauth-app';
import { type CrowdinInstallation, crowdinApp } from 'passport-oauth-app/providers';

/** Hands errors on, under Express 4 too. */
const route =
  (work: (req: Request, res: Response) => Promise<unknown>): RequestHandler =>
  (req, res, next) =>
    void work(req, res).catch(next);

/**
 * @param options With a `tokenStore`: there is no session here.
 * @param limiter Limits the requests of each address, such as `rateLimit({ limit: 20 })` of express-rate-limit.
 */
export function installedApplication(options: StrategyOptions, limiter: RequestHandler): Express {
  /** Installed events by grant id: a table of yours, which all processes share. Encrypt `appSecret`. */
  const installations = new Map<string, CrowdinInstallation>();
  const strategy = new Strategy({
    ...options,
    applicationGrant: async (grantId) => {
      const installation = installations.get(grantId);
      return installation && crowdinApp(installation);
    },
  });
  /** On crowdin.com there is no domain: the installation is that of a user. */
  const idOf = (domain: unknown, userId: unknown): string => (domain ? `organization ${domain}` : `user ${userId}`);
  const key = new TextEncoder().encode(String(options.clientSecret));

  async function installed(req: Request, res: Response): Promise<void> {
    // Anybody can send an event. Its token tells whether it is genuine, and whose it is.
    const trial = `trial ${randomUUID()}`;
    installations.set(trial, req.body);
    try {
      await strategy.client(trial).accessToken();
      const { organizationDomain, subject } = (await strategy.grant(trial)) ?? {};
      const grantId = idOf(organizationDomain, subject);
      installations.set(grantId, req.body);
      await strategy.deleteGrant(grantId);
      res.sendStatus(204);
    } catch {
      res.sendStatus(403);
    } finally {
      installations.delete(trial);
      await strategy.deleteGrant(trial);
    }
  }

  async function uninstalled(req: Request, res: Response): Promise<unknown> {
    const sent = Buffer.from(String(req.body.appSecret));
    for (const [grantId, { appSecret }] of installations) {
      const known = Buffer.from(appSecret);
      if (known.length !== sent.length || !timingSafeEqual(known, sent)) continue;
      installations.delete(grantId);
      await strategy.deleteGrant(grantId);
      return res.sendStatus(204);
    }
    return res.sendStatus(403);
  }

  async function frame(req: Request, res: Response): Promise<unknown> {
    const settings = { algorithms: ['HS256'], audience: String(options.clientID), requiredClaims: ['exp', 'sub'] };
    const verified = await jwtVerify(String(req.query.jwtToken), key, settings).catch(() => undefined);
    if (!verified) return res.sendStatus(401);
    const { domain, sub } = verified.payload;
    return res.json(await strategy.client(idOf(domain, sub)).projects());
  }

  const json = express.json({ limit: '10kb' });
  return express()
    .post('/installed', limiter, json, route(installed))
    .post('/uninstall', limiter, json, route(uninstalled))
    .get('/frame', route(frame));
}
