import { type Html, html } from '../pages/html.js';
import { type Incident, incidentGroups } from './catalogue.js';

/** The buttons that break something, each group beside the lines of code that handle it. */
export const incidentsView: Html = html`<section aria-labelledby="incidents-title">
<h2 id="incidents-title">Break something</h2>
<p class="soft">Each button causes the incident and then makes one API call as any page would.</p>
${incidentGroups.map(
  ({ title, text, code, file, incidents }) => html`<section class="card group">
<h3>${title}</h3>
<p class="soft">${text}</p>
<pre><code>${code}</code></pre>
<p class="soft file">example-app/src/${file}</p>
<ul class="incidents">${incidents.map(incidentView)}</ul>
</section>
`,
)}
</section>`;

function incidentView({ name, title, text }: Incident): Html {
  return html`<li><form method="post" action="/incidents/${name}"><button class="small" aria-describedby="about-${name}">${title}</button></form><p class="soft" id="about-${name}">${text}</p></li>`;
}
