/**
 * The first process in a network of its own: it starts the program, and passes its connections out through the one
 * door that there is, a socket in the file system. Started with the path of the socket, the port, and the words.
 */
import { spawn } from 'node:child_process';
import { connect, createServer } from 'node:net';
import { constants } from 'node:os';

const [door = '', port = '', program = '', ...given] = process.argv.slice(2);

const server = createServer((socket) => {
  const out = connect(door);
  socket.on('error', () => out.destroy()).once('close', () => out.destroy());
  out.on('error', () => socket.destroy()).once('close', () => socket.destroy());
  socket.pipe(out).pipe(socket);
});

server.listen(Number(port), '127.0.0.1', () => {
  const child = spawn(program, given, { stdio: 'inherit', detached: true });
  // The kernel gives the first process of its kind no signal that it does not expect.
  for (const signal of ['SIGTERM', 'SIGHUP', 'SIGUSR2'] as const) {
    process.on(signal, () => void child.kill(signal));
  }
  // What a terminal sends goes to the program and to what it started, as from its own terminal.
  for (const signal of ['SIGINT', 'SIGQUIT', 'SIGWINCH'] as const) {
    process.on(signal, () => void (child.pid && process.kill(-child.pid, signal)));
  }
  child.once('error', (error: NodeJS.ErrnoException) => {
    process.stderr.write(`strongroom agent run: the program cannot be started: ${error.code}\n`);
    process.exit(error.code === 'ENOENT' ? 127 : 126);
  });
  child.once('exit', (code, signal) => {
    process.exit(code ?? 128 + constants.signals[signal ?? 'SIGKILL']);
  });
});
