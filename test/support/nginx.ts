import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type DataServer, startDataServer } from './data-server.js';
import { findExecutable, isInstalled } from './service-process.js';

const executable = findExecutable('nginx', ['/usr/sbin']);

/** Whether nginx is installed; see {@link isInstalled}. For `test.skipIf(!hasNginx())`. */
export const hasNginx = (): boolean => isInstalled('nginx', executable);

/**
 * Starts nginx in front of an application, on a free port, with the limits and buffers that it has by default. One process: a
 * worker would outlive its end by SIGKILL.
 */
export function startNginx(upstream: string): Promise<DataServer> {
  return startDataServer({
    name: 'nginx',
    command: (folder, port) => {
      const config = join(folder, 'nginx.conf');
      writeFileSync(config, configOf(folder, port, upstream));
      return {
        file: executable ?? 'nginx',
        args: ['-p', folder, '-c', config, '-e', 'stderr'],
        ready: /using the "\w+" event method/,
      };
    },
  });
}

function configOf(folder: string, port: number, upstream: string): string {
  const kinds = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];
  return `
    ${process.getuid?.() === 0 ? 'user root;' : ''}
    daemon off; pid ${folder}/nginx.pid; error_log stderr notice; master_process off; events {}
    http {
      access_log off;
      ${kinds.map((kind) => `${kind}_temp_path ${folder}/${kind};`).join(' ')}
      server {
        listen 127.0.0.1:${port};
        location / { proxy_pass ${upstream}; proxy_set_header Host $http_host; }
      }
    }`;
}
