// Preloaded into the processes of the cluster: each worker dies right before the primary process tells it to end. Its
// channel is closed then, and the primary process, which waits here, cannot have noticed.
import cluster from 'node:cluster';
import { readFileSync } from 'node:fs';

const { send } = cluster.Worker.prototype;
cluster.Worker.prototype.send = function (message, ...more) {
  if (message[1] === 'end') {
    const { pid } = this.process;
    process.kill(pid, 'SIGKILL');
    // Until it is a zombie.
    while (!/\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8')));
  }
  return send.call(this, message, ...more);
};
