import type { NextFunction, Request, Response } from 'express';

const own = ['style-src', 'script-src', 'connect-src', 'img-src', 'form-action'].map((name) => `${name} 'self'`);
const none = ['default-src', 'base-uri', 'frame-ancestors'].map((name) => `${name} 'none'`);

/** Sets headers that forbid foreign scripts, framing and caching. */
export function securityHeaders(_req: Request, res: Response, next: NextFunction): void {
  res.set({
    'Content-Security-Policy': [...none, ...own].join('; '),
    'Cross-Origin-Opener-Policy': 'same-origin',
    'Cache-Control': 'no-store',
    'Referrer-Policy': 'same-origin',
    'X-Content-Type-Options': 'nosniff',
    'X-Frame-Options': 'DENY',
  });
  next();
}

/**
 * Refuses a form that another site's page has sent, or that of another port or subdomain: the session cookie is SameSite=Lax,
 * which keeps it from other sites' forms alone. Clients other than browsers send neither header.
 */
export function sameOriginPosts(req: Request, res: Response, next: NextFunction): void {
  const origin = req.get('origin');
  const isOwn = origin === undefined || (URL.canParse(origin) && new URL(origin).host === req.host);
  const site = req.get('sec-fetch-site') ?? (isOwn ? 'none' : 'cross-site');
  if (['GET', 'HEAD'].includes(req.method) || ['same-origin', 'none'].includes(site)) next();
  else res.status(403).type('text').send('This form was sent by a page of another origin.');
}
