#!/usr/bin/env node
/** Health check of a container: exit code 0 if the vault that these variables configure is alive. */
import { request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';

const timeoutMs = 4000;

const { env } = process;
const everyAddress = { '0.0.0.0': '127.0.0.1', '::': '::1' };
const host = env.STRONGROOM_HOST || '127.0.0.1';
const options = {
  host: everyAddress[host] ?? host,
  port: env.STRONGROOM_PORT || '8080',
  path: '/healthz',
  timeout: timeoutMs,
};

// The certificate has the name that clients use, not this address. Nothing secret is sent.
const request = env.STRONGROOM_TLS_CERT
  ? requestHttps({ ...options, rejectUnauthorized: false })
  : requestHttp(options);
request.on('response', ({ statusCode }) => process.exit(statusCode === 200 ? 0 : 1));
request.on('timeout', () => process.exit(1));
request.on('error', () => process.exit(1));
request.end();
