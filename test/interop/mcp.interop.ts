import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { memoryTokenStore } from 'passport-oauth-app';
import { expect, onTestFinished, test } from 'vitest';
import { Browser } from '../support/browser.js';
import { startWorld } from '../support/world.js';

/** The MCP server of a service: its tools act for the user of the access token. Refuses the tokens in `refused`. */
async function startMcpServer(refused: Set<string>) {
  const seen: (string | undefined)[] = [];
  const server = createServer({ keepAliveTimeout: 0 }, async (req: IncomingMessage, res: ServerResponse) => {
    const token = /^Bearer (.+)$/.exec(req.headers.authorization ?? '')?.[1];
    seen.push(token);
    if (token === undefined || refused.has(token)) {
      res.writeHead(401, { 'www-authenticate': 'Bearer error="invalid_token"' }).end();
      return;
    }
    if (req.method !== 'POST') return void res.writeHead(405).end();
    const mcp = new McpServer({ name: 'projects', version: '1.0.0' });
    mcp.registerTool('list-projects', { description: 'Lists the projects of the user' }, () => ({
      content: [{ type: 'text', text: 'Site' }],
    }));
    const transport = new StreamableHTTPServerTransport({});
    res.on('close', () => void mcp.close());
    // Its optional callbacks are declared without undefined.
    await mcp.connect(transport as Parameters<typeof mcp.connect>[0]);
    await transport.handleRequest(req, res, await json(req));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { origin: `http://mcp.localhost:${(server.address() as AddressInfo).port}`, seen };
}

test('an MCP client of the official SDK calls tools with the token of the user, also after a refresh', async () => {
  const refused = new Set<string>();
  const { origin, seen } = await startMcpServer(refused);
  const world = await startWorld({
    strategy: { tokenStore: memoryTokenStore(), grantId: () => 'ada', origins: [origin] },
  });
  onTestFinished(() => world.close());
  await world.logIn(new Browser());
  const api = world.strategy.client('ada');
  const accessToken = await api.accessToken();
  const client = new Client({ name: 'agent', version: '1.0.0' });
  const transport = new StreamableHTTPClientTransport(new URL('/mcp', origin), { fetch: api.fetch });
  await client.connect(transport as Parameters<typeof client.connect>[0]);
  expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(['list-projects']);
  refused.add(accessToken);
  const { content } = await client.callTool({ name: 'list-projects', arguments: {} });
  expect(content).toEqual([{ type: 'text', text: 'Site' }]);
  await client.close();
  const current = await api.accessToken();
  expect(current).not.toBe(accessToken);
  expect(new Set(seen)).toEqual(new Set([accessToken, current]));
});
