// Preloaded into an application. What its own libraries send to SERVICE_HOST over TLS goes to SERVICE_URL in its place, and its
// clock shows CLOCK_AHEAD seconds more.
const http = require('node:http');
const https = require('node:https');

const { SERVICE_HOST, SERVICE_URL = 'http://127.0.0.1:9', CLOCK_AHEAD = '0' } = process.env;
const { hostname, port } = new URL(SERVICE_URL);
const { request } = https;
const { now } = Date;

https.request = (options, ...others) =>
  options.host === SERVICE_HOST
    ? http.request({ ...options, protocol: 'http:', host: hostname, port, agent: undefined }, ...others)
    : request(options, ...others);
Date.now = () => now() + 1000 * Number(CLOCK_AHEAD);
