import express from 'express';
import { jwtVerify } from 'jose';
import passport from 'passport';
import {
  apiClient,
  embedded,
  memoryTokenStore,
  requireAuthorization,
  Strategy,
  type StrategyOptions,
} from 'passport-oauth-app';
import type { Emulator } from 'passport-oauth-app/emulator';
import { html } from './html.js';
import type { ProjectList } from './pages.js';

/** Path of the pages for a frame. */
const root = '/embedded';

/**
 * Returns the pages that the service shows in a frame of its own page. They need no session and no cookie: the service signs
 * a token that names their user.
 *
 * @param url Of the application.
 */
export function embeddedPages(service: Emulator, strategyOptions: StrategyOptions, url: string) {
  const { origin: host } = new URL(service.embed(url));
  const strategy = new Strategy({
    ...strategyOptions,
    name: 'embedded',
    callbackURL: `${root}/callback`,
    tokenStore: memoryTokenStore(),
    grantId: (_req, user) => String((user as Express.User).id),
  });
  const logins = new passport.Passport();
  logins.use(strategy);
  const secret = new TextEncoder().encode(service.options.clientSecret);
  const frame = embedded(strategy, {
    path: `${root}/login/frame`,
    login: `${root}/login`,
    frameAncestors: [host],
    identify: async (req) => {
      const token = new URL(req.url ?? '/', url).searchParams.get('jwtToken');
      if (token === null) return undefined;
      const { payload } = await jwtVerify(token, secret, {
        algorithms: ['HS256'],
        audience: service.options.clientID,
        requiredClaims: ['exp', 'sub'],
        currentDate: new Date(strategyOptions.clock?.() ?? Date.now()),
      });
      return { id: payload.sub };
    },
  });

  const router = express.Router();
  router.get('/', (_req, res) => res.redirect(service.embed(`${url}${root}/projects`)));
  router.use(frame, apiClient(strategy));
  router.get('/login', logins.authenticate('embedded', { session: false }));
  router.get('/callback', logins.authenticate('embedded', { session: false, successRedirect: root }));
  router.get('/projects', requireAuthorization({ login: `${root}/login`, frame }), async (req, res) => {
    const { data } = await req.apiClient.projects<ProjectList>();
    res.removeHeader('X-Frame-Options');
    res.set('Content-Security-Policy', `default-src 'none'; style-src 'self'; frame-ancestors ${host}`);
    const { source } = html`<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>Projects</title><link rel="stylesheet" href="/style.css"></head>
<body><main><div><h1>Projects, inside the service</h1>
<p>This page runs in a frame of the service, without cookies: the service signs a token that identifies you.</p>
<ul>${data.map((project) => html`<li>${project.data.name}</li>`)}</ul>
<p><a class="button" href="${url}" target="_top">Back to the example</a></p></div></main></body>
</html>`;
    res.send(source);
  });
  return { router, close: () => strategy.close() };
}
