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

/** Returns the page that lists the visitor's projects. */
export function projectsPage(req: Request, res: Response, list: ProjectList): Promise<string> {
  const projects = list.data.map(({ data }) => data);
  const intro = html`<h1>Projects</h1>
<p class="lead">From <code>${req.apiClient.baseUrl}/projects</code>, on behalf of ${req.user?.name}.</p>`;
  const main =
    projects.length > 0 ? html`<ul class="projects">${projects.map(item)}</ul>` : html`<p>There are none yet.</p>`;
  return layout(req, res, { title: 'Projects', intro, main });
}

function item({ name, description, progress }: Project): Html {
  const bar =
    typeof progress === 'number'
      ? html`<div class="progress"><progress max="100" value="${progress}" aria-label="Progress of ${name}"></progress><span>${progress}%</span></div>`
      : undefined;
  return html`<li class="card"><h2>${name}</h2>${description ? html`<p class="soft">${description}</p>` : undefined}${bar}</li>
`;
}
