import type { Request, Response } from 'express';
import { type Html, html } from './html.js';
import { layout } from './layout.js';

/** The payload of `/api/v2/projects`, as far as it is shown here. */
export interface ProjectList {
  readonly data: readonly { readonly data: Project }[];
}

interface Project {
  readonly name: string;
  readonly description?: string;
  /** Per cent. */
  readonly progress?: number;
}

/** The page that lists the visitor's projects. */
export function projectsPage(req: Request, res: Response, list: ProjectList): Promise<string> {
  const projects = list.data.map(({ data }) => data);
  const main = html`<h1>Projects</h1>
<p class="lead">From <code>${req.apiClient.baseUrl}/projects</code>, on behalf of ${req.user?.name}.</p>
${'expired' in req.query ? expiredNotice : undefined}
${projects.length > 0 ? html`<ul class="projects">${projects.map(item)}</ul>` : html`<p>There are none yet.</p>`}`;
  return layout(req, res, { title: 'Projects', main });
}

const expiredNotice = html`<p class="notice" role="status">The service refused the token that this page was about to use.
It was refreshed, the request was made again, and here are your projects.</p>`;

function item({ name, description, progress }: Project): Html {
  return html`<li>
<h2>${name}</h2>
${description ? html`<p>${description}</p>` : undefined}
${typeof progress === 'number' ? bar(name, progress) : undefined}
</li>
`;
}

function bar(name: string, progress: number): Html {
  return html`<div class="progress"><progress max="100" value="${progress}" aria-label="Progress of ${name}"></progress><span>${progress}%</span></div>`;
}
