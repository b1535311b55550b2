/** Hostile code: programs that look for a way out end as they must, and the next call of another tenant works. */

import { attack } from '../support/attack.ts';
import { escapes } from '../support/hostile-programs.ts';

attack(escapes);
