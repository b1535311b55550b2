/** The script that runs in a new engine: the parts of `guest`, by their source text. */
import { buffer } from '../guest/buffer.ts';
import { clone } from '../guest/clone.ts';
import { crypto } from '../guest/crypto.ts';
import { entry, hostPart } from '../guest/entry.ts';
import { errors } from '../guest/errors.ts';
import { logging } from '../guest/logging.ts';
import { modules } from '../guest/modules.ts';
import { random } from '../guest/random.ts';
import { urls } from '../guest/urls.ts';
import { web } from '../guest/web.ts';
import { webcrypto } from '../guest/webcrypto.ts';
import { errorModules } from '../modules.ts';

export const prelude = `(function () {
'use strict';
const given = globalThis.host;
delete globalThis.host;
const host = (${hostPart})(given);
const errors = (${errors})();
const buffer = (${buffer})(host.host);
const random = (${random})(host.host, buffer);
const crypto = (${crypto})({ host: host.host, buffer, random });
const webcrypto = (${webcrypto})(crypto, buffer);
const urls = (${urls})();
const modules = (${modules})(crypto, buffer);
const web = { ...(${web})(host.host, buffer), ...(${clone})(host.host), ...urls };
const logging = (${logging})(host.host);
const parts = { host, errors, buffer, crypto, webcrypto, modules, web, logging };
return (${entry})(parts, ${JSON.stringify(errorModules)});
})()`;
