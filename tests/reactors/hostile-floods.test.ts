/** Hostile code: programs that take or send too much end as they must, and the next call of another tenant works. */

import { attack } from '../support/attack.ts';
import { bombsAndFloods } from '../support/hostile-programs.ts';

attack(bombsAndFloods);
