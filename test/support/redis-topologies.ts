import type { ChildProcess } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createClient } from 'redis';
import { PERSISTENCE } from './redis-server.js';
import { endService, findExecutable, freePort, startService } from './service-process.js';
import { until } from './until.js';

const executable = findExecutable('redis-server') ?? 'redis-server';

/** Never connects. node-redis makes a class of all commands for each client, in 30 ms, but for those that it duplicates. */
const original = createClient();

/** One Redis process of a topology. */
export interface RedisNode {
  readonly port: number;
  process: ChildProcess;
  readonly launch: () => Promise<ChildProcess>;
}

/** Several Redis processes that belong together. */
export interface RedisTopology {
  /** Ports of the nodes that clients are told: the Sentinels, or the primaries of the Cluster. */
  readonly ports: readonly number[];
  readonly nodes: readonly RedisNode[];
  /** Sends a command to one node. */
  command(port: number, ...args: string[]): Promise<unknown>;
  /** Resolves once so many replicas of a primary have all that was written to it so far. */
  replicated(port: number, replicas: number): Promise<void>;
  /** Ends one node by SIGKILL; the data stays. */
  kill(port: number): Promise<void>;
  /** Starts a killed node on its port with its data. */
  restart(port: number): Promise<void>;
  stop(): Promise<void>;
}

/** Name of the primary that Sentinel watches. */
export const SENTINEL_NAME = 'grants';

/** How long a node may not answer until its replica takes its place, in milliseconds. By default longer than any test waits for a machine. */
export interface Patience {
  readonly downAfterMs?: number;
}

const LONG_MS = 600_000;

/** Starts a Cluster of three primaries with a replica each, which has all that its primary has. */
export function startRedisCluster({ downAfterMs = LONG_MS }: Patience = {}): Promise<RedisTopology> {
  return startTopology((topology) => startCluster(topology, downAfterMs));
}

/**
 * Starts a primary, its replicas, and three Sentinels that watch them under {@link SENTINEL_NAME}. The replicas have all that the
 * primary has.
 */
export function startRedisSentinel({
  replicas = 1,
  downAfterMs = LONG_MS,
}: Patience & { readonly replicas?: number } = {}): Promise<RedisTopology & { readonly primary: number }> {
  return startTopology((topology) => startSentinel(topology, replicas, downAfterMs));
}

type Topology = Awaited<ReturnType<typeof newTopology>>;

/** Starts nodes; all are ended if one of them fails. */
async function startTopology<T>(start: (topology: Topology) => Promise<T>): Promise<T> {
  const topology = await newTopology();
  try {
    return await start(topology);
  } catch (error) {
    await topology.stop();
    throw error;
  }
}

async function startCluster(topology: Topology, downAfterMs: number): Promise<RedisTopology> {
  const settings = ['--cluster-enabled', 'yes', '--cluster-allow-replica-migration', 'no'];
  // A node waits before it serves, the longer the more patient it is with others.
  settings.push('--cluster-node-timeout', '2000', '--cluster-replica-no-failover', 'yes');
  const ports: number[] = [];
  for (let index = 0; index < 6; index += 1) ports.push(await freePort());
  // Each node knows all others from its start: to meet them takes rounds of gossip.
  for (const port of ports) await topology.write(`nodes-${port}.conf`, clusterFile(ports, port));
  await Promise.all(ports.map((port) => topology.start(settings, undefined, port)));
  const seesAll = async (port: number) => {
    const info = String(await topology.command(port, 'CLUSTER', 'INFO'));
    if (!info.includes('cluster_state:ok')) throw new Error(info);
  };
  for (const port of ports) await until(() => seesAll(port));
  const primaries = ports.slice(0, 3);
  // A replica is told to clients once it has got something.
  for (const port of primaries) await topology.replicated(port, 1);
  for (const port of ports) {
    await until(async () => {
      const slots = (await topology.command(port, 'CLUSTER', 'SLOTS')) as unknown[][];
      if (slots.length !== 3 || slots.some((slot) => slot.length < 4)) throw new Error('a replica is missing');
    });
    await topology.command(port, 'CONFIG', 'SET', 'cluster-node-timeout', String(downAfterMs));
    await topology.command(port, 'CONFIG', 'SET', 'cluster-replica-no-failover', 'no');
  }
  // One that stood still meanwhile counts as failed, and with the longer time-out for as long as any test runs.
  for (const port of ports) await seesAll(port);
  return { ...topology, ports: primaries };
}

/** Returns the file of a Cluster's node: the first three of `ports` are primaries of a third of the slots each, the others their replicas. */
function clusterFile(ports: readonly number[], own: number): string {
  const idOf = (port: number | undefined) => String(port).padStart(40, '0');
  const lines = ports.map((port, index) => {
    const primary = index % 3;
    const slots = [Math.floor((primary * 16384) / 3), Math.floor(((primary + 1) * 16384) / 3) - 1];
    const role = index < 3 ? 'master -' : `slave ${idOf(ports[primary])}`;
    const me = port === own ? 'myself,' : '';
    const address = `${idOf(port)} 127.0.0.1:${port}@${port + 10_000}`;
    return `${address} ${me}${role} 0 0 ${primary + 1} connected ${index < 3 ? slots.join('-') : ''}`.trimEnd();
  });
  return `${lines.join('\n')}\nvars currentEpoch 3 lastVoteEpoch 0\n`;
}

async function startSentinel(
  topology: Topology,
  replicas: number,
  downAfterMs: number,
): Promise<RedisTopology & { readonly primary: number }> {
  const primary = await topology.start([]);
  for (let index = 0; index < replicas; index += 1) await topology.start(['--replicaof', '127.0.0.1', String(primary)]);
  await topology.replicated(primary, replicas);
  const sentinels: number[] = [];
  for (let index = 0; index < 3; index += 1) {
    sentinels.push(
      await topology.start(undefined, [
        `sentinel monitor ${SENTINEL_NAME} 127.0.0.1 ${primary} 2`,
        `sentinel down-after-milliseconds ${SENTINEL_NAME} ${downAfterMs}`,
        `sentinel failover-timeout ${SENTINEL_NAME} 5000`,
      ]),
    );
  }
  await until(async () => {
    for (const port of sentinels) {
      const state = (await topology.command(port, 'SENTINEL', 'MASTER', SENTINEL_NAME)) as Record<string, string>;
      const known = [state['num-slaves'], state['num-other-sentinels']];
      if (known.join() !== `${replicas},2`) throw new Error(`replicas and other Sentinels known: ${known}`);
    }
  });
  return { ...topology, ports: sentinels, primary };
}

async function newTopology() {
  const folder = await mkdtemp(join(tmpdir(), 'redis-'));
  const nodes: RedisNode[] = [];
  const write = (name: string, text: string) => writeFile(join(folder, name), text);
  const start = async (
    args: readonly string[] | undefined,
    sentinel?: readonly string[],
    wanted?: number,
  ): Promise<number> => {
    const port = wanted ?? (await freePort());
    const common = ['--port', `${port}`, '--bind', '127.0.0.1', '--dir', folder];
    const own = join(folder, `${port}.conf`);
    await write(`${port}.conf`, (sentinel ?? []).join('\n'));
    const data = [...PERSISTENCE, '--appenddirname', `aof-${port}`];
    const node = ['--cluster-config-file', `nodes-${port}.conf`, '--repl-diskless-sync-delay', '0'];
    const launch = () =>
      startService({
        file: executable,
        args: sentinel ? [own, '--sentinel', ...common] : [...common, ...data, ...node, ...(args ?? [])],
        ready: sentinel ? /\+monitor|Sentinel ID is/ : /Ready to accept connections/,
      });
    nodes.push({ port, process: await launch(), launch });
    return port;
  };
  /** Sends commands over one connection. Resolves to the last answer. */
  const send = async (port: number, ...commands: string[][]): Promise<unknown> => {
    // A busy machine may take its time: the limit is that of the test.
    const socket = { port, host: '127.0.0.1', reconnectStrategy: false, connectTimeout: 0 } as const;
    const client = original.duplicate({ socket }).on('error', () => {});
    await client.connect();
    try {
      return (await Promise.all(commands.map((command) => client.sendCommand(command)))).at(-1);
    } finally {
      client.destroy();
    }
  };
  const command = (port: number, ...args: string[]) => send(port, args);
  const replicated = async (port: number, replicas: number): Promise<void> => {
    // WAIT waits for what its own connection has written: here a command that changes nothing, and that replicas get all the same.
    await send(port, ['FUNCTION', 'FLUSH'], ['WAIT', String(replicas), '0']);
  };
  const kill = async (port: number): Promise<void> => {
    const node = nodes.find((each) => each.port === port);
    if (node) await endService(node.process, 'SIGKILL');
  };
  const restart = async (port: number): Promise<void> => {
    const node = nodes.find((each) => each.port === port);
    if (node) node.process = await node.launch();
  };
  return {
    nodes,
    write,
    start,
    command,
    replicated,
    kill,
    restart,
    stop: async () => {
      await Promise.all(nodes.map((node) => endService(node.process, 'SIGKILL')));
      await rm(folder, { recursive: true, force: true });
    },
  };
}
