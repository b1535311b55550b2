/** Hostile code: programs that never end end as they must, and the next call of another tenant works. */

import { attack } from '../support/attack.ts';
import { endless } from '../support/hostile-programs.ts';

attack(endless);
