/** `strongroom serve` without one promise, which BENCH_WITHOUT names. The product has no such switch. */

import { readConfig } from '../src/config.ts';
import { serve } from '../src/serve/serve.ts';
import { type PromiseName, promises } from './promises.ts';

const without = process.env['BENCH_WITHOUT'] as PromiseName;
const running = await serve(readConfig(), { open: promises[without] });
process.once('SIGTERM', () => void running.stop());
