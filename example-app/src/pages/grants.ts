import type { Request, Response } from 'express';
import type { GrantSummary } from 'passport-oauth-app';
import { type Html, html } from './html.js';
import { layout } from './layout.js';

/** The grants of one account: one for each login that no logout has ended. */
export interface AccountGrants {
  readonly account: string;
  readonly grants: readonly GrantSummary[];
}

/** Returns the operator's page: who has granted this application access, with a button that ends it. */
export function grantsPage(req: Request, res: Response, accounts: readonly AccountGrants[]): Promise<string> {
  const intro = html`<h1>Grants</h1>
<p class="lead">For the operator: who has given this application access. It is shown with the emulated service only.</p>`;
  const main =
    accounts.length > 0
      ? html`<ul class="projects">${accounts.map((each) => item(each, req.user?.id))}</ul>`
      : html`<p>Nobody is logged in.</p>`;
  return layout(req, res, { title: 'Grants', intro, main });
}

function item({ account, grants }: AccountGrants, viewer: string | undefined): Html {
  const living = grants.filter(({ ended }) => !ended).length;
  const [first] = grants;
  const logins = living === 0 ? 'Ended: the user has to log in again' : living === 1 ? '1 login' : `${living} logins`;
  const scope = first?.scope?.join(', ');
  const last = Math.max(...grants.map(({ createdAt, refreshedAt }) => refreshedAt ?? createdAt ?? 0));
  return html`<li class="card">
<h2>Account ${account}${account === viewer ? ' (you)' : undefined}</h2>
<p class="soft">${first?.organizationDomain ?? 'Personal account'} · ${logins}${scope ? ` · ${scope}` : undefined}<br>Last token: ${time(last)}</p>
<form method="post" action="/grants/${encodeURIComponent(account)}/end"><button class="small" aria-label="Log out everywhere: account ${account}">Log out everywhere</button></form>
</li>
`;
}

function time(ms: number): Html {
  const iso = new Date(ms).toISOString();
  return html`<time datetime="${iso}">${iso.slice(0, 19).replace('T', ' ')} UTC</time>`;
}
