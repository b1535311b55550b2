/** The editor of permissions and rules. */
import type { AccessCondition, AccessRule, Application } from '@strongroom/client';
import { useLoad } from '../core/load.ts';
import { place, setQuery } from '../core/router.ts';
import { vaultFor } from '../core/session.ts';
import { t } from '../texts.ts';
import { Badge, Button, Check, Select, TextField } from '../ui/basics.tsx';
import { Icon } from '../ui/icons.tsx';

export interface Access {
  readonly permissions: readonly string[];
  readonly rules: readonly AccessRule[];
}

export function accessOf({ permissions, rules }: Application): Access {
  return { permissions, rules };
}

export const rulePermissions = [
  'token:read',
  'token:search',
  'token:create',
  'token:update',
  'token:delete',
  'token:use',
  'proxy:invoke',
  'reactor:invoke',
] as const;

const transforms = ['redact', 'mask', 'reveal'] as const;
type Transform = (typeof transforms)[number];

interface RuleEditorProps {
  readonly kind: string;
  readonly access: Access;
  readonly onChange: (access: Access) => void;
}

export function RuleEditor({ kind, access, onChange }: RuleEditorProps) {
  const { permissions, rules } = access;
  const open = Number(place.value.query.get('rule') ?? Number.NaN);
  const setOpen = (at: number | undefined) => setQuery({ rule: at?.toString() });
  const setRules = (next: readonly AccessRule[]) => onChange({ permissions, rules: next });
  const replace = (at: number, rule: AccessRule) =>
    setRules(rules.map((one, index) => (index === at ? rule : one)));
  const add = () => {
    const priority = Math.max(0, ...rules.map((rule) => rule.priority)) + 1;
    setRules([...rules, { ...newRule, priority }]);
    setOpen(rules.length);
  };
  return (
    <>
      {kind === 'management' ? null : (
        <div class="stack-tight">
          {rules.map((rule, at) => (
            <RuleCard
              // The place is what a rule is known by while it is edited.
              key={at}
              rule={rule}
              isOpen={open === at}
              onToggle={() => setOpen(open === at ? undefined : at)}
              onChange={(next) => replace(at, next)}
              onRemove={() => setRules(rules.filter((_, index) => index !== at))}
            />
          ))}
          {rules.length === 0 && <p class="muted">{t.rules.none}</p>}
          <div>
            <Button icon="plus" onClick={add}>
              {t.rules.add}
            </Button>
          </div>
        </div>
      )}
      <PlainPermissions
        kind={kind}
        held={permissions}
        onChange={(next) => onChange({ rules, permissions: next })}
      />
    </>
  );
}

const newRule: AccessRule = {
  description: '',
  priority: 1,
  container: '/',
  permissions: ['token:read'],
  transform: 'mask',
};

interface RuleCardProps {
  readonly rule: AccessRule;
  readonly isOpen: boolean;
  readonly onToggle: () => void;
  readonly onChange: (rule: AccessRule) => void;
  readonly onRemove: () => void;
}

function RuleCard({ rule, isOpen, onToggle, onChange, onRemove }: RuleCardProps) {
  const where = rule.container ?? (rule.conditions ?? []).map(({ value }) => value).join(' · ');
  const { container, ...rest } = rule;
  return (
    <div class="rule">
      <div class="rule-head">
        <button type="button" class="rule-toggle" aria-expanded={isOpen} onClick={onToggle}>
          <Icon name={isOpen ? 'down' : 'right'} />
          <strong>{rule.priority}</strong>
          <code>{where}</code>
          <span class="muted">{rule.description}</span>
        </button>
        <span class="badges">
          <Badge tone={rule.transform === 'reveal' ? 'warn' : 'neutral'}>{rule.transform}</Badge>
          <Badge>{t.rules.permissions(rule.permissions.length)}</Badge>
        </span>
      </div>
      {isOpen && (
        <>
          <div class="pair">
            <TextField
              label={t.rules.priority}
              inputMode="numeric"
              value={String(rule.priority)}
              onValue={(value) => onChange({ ...rule, priority: Number(value) || 0 })}
            />
            <Select<Transform>
              label={t.rules.transform}
              hint={t.rules.transforms[rule.transform]}
              value={rule.transform}
              options={transforms.map((one) => [one, one])}
              onValue={(transform) => onChange({ ...rule, transform })}
            />
          </div>
          <TextField
            label={t.rules.description}
            value={rule.description ?? ''}
            onValue={(description) => onChange({ ...rule, description })}
          />
          <TextField
            label={t.rules.container}
            hint={t.rules.containerHint}
            value={container ?? ''}
            onValue={(value) => onChange(value === '' ? rest : { ...rest, container: value })}
          />
          <Conditions
            conditions={rule.conditions ?? []}
            onChange={(conditions) => {
              const { conditions: _before, ...without } = rule;
              onChange(conditions.length === 0 ? without : { ...without, conditions });
            }}
          />
          <fieldset>
            <legend>{t.rules.allows}</legend>
            <div class="checks">
              {rulePermissions.map((one) => (
                <Check
                  key={one}
                  label={<code>{one}</code>}
                  checked={rule.permissions.includes(one)}
                  onChange={(checked) =>
                    onChange({ ...rule, permissions: toggled(rule.permissions, one, checked) })
                  }
                />
              ))}
            </div>
          </fieldset>
          <div class="actions">
            <Button icon="trash" tone="danger" onClick={onRemove}>
              {t.rules.remove}
            </Button>
          </div>
        </>
      )}
    </div>
  );
}

function toggled(list: readonly string[], one: string, isIn: boolean): string[] {
  const others = list.filter((other) => other !== one);
  return isIn ? [...others, one] : others;
}

interface ConditionsProps {
  readonly conditions: readonly AccessCondition[];
  readonly onChange: (conditions: AccessCondition[]) => void;
}

function Conditions({ conditions, onChange }: ConditionsProps) {
  const replace = (at: number, next: AccessCondition) =>
    onChange(conditions.map((one, index) => (index === at ? next : one)));
  return (
    <fieldset>
      <legend>{t.rules.conditions}</legend>
      {conditions.map((condition, at) => (
        <div class="filters spaced" key={at}>
          <select
            class="pick"
            aria-label={t.rules.attribute}
            value={condition.attribute}
            onChange={(event) =>
              replace(at, { ...condition, attribute: event.currentTarget.value as 'id' })
            }
          >
            <option value="id">id</option>
            <option value="container">container</option>
          </select>
          <select
            class="pick"
            aria-label={t.rules.operator}
            value={condition.operator}
            onChange={(event) =>
              replace(at, { ...condition, operator: event.currentTarget.value as 'equals' })
            }
          >
            <option value="equals">equals</option>
            <option value="starts_with">starts with</option>
          </select>
          <input
            class="pick"
            type="text"
            aria-label={t.rules.value}
            value={condition.value}
            onInput={(event) => replace(at, { ...condition, value: event.currentTarget.value })}
          />
          <Button
            icon="close"
            tone="quiet"
            label={t.rules.removeCondition}
            onClick={() => onChange(conditions.filter((_, index) => index !== at))}
          />
        </div>
      ))}
      <button
        type="button"
        class="link"
        onClick={() =>
          onChange([...conditions, { attribute: 'id', operator: 'starts_with', value: '' }])
        }
      >
        {t.rules.addCondition}
      </button>
    </fieldset>
  );
}

interface PlainProps {
  readonly kind: string;
  readonly held: readonly string[];
  readonly onChange: (held: readonly string[]) => void;
}

/** Permissions without a rule. */
function PlainPermissions({ kind, held, onChange }: PlainProps) {
  const all = useLoad(`permissions ${kind}`, () =>
    vaultFor('application:read').applications.permissions({
      application_type: kind as 'private',
    }),
  );
  return (
    <fieldset>
      <legend>{t.rules.plain}</legend>
      <p class="hint">{kind === 'management' ? t.rules.managementHint : t.rules.plainHint}</p>
      <div class="checks">
        {(all.data ?? []).map(({ type, description }) => (
          <Check
            key={type}
            label={
              <>
                <code>{type}</code>
                <br />
                <span class="hint">{description.split('. ', 1)[0]}</span>
              </>
            }
            checked={held.includes(type)}
            onChange={(checked) => onChange(toggled(held, type, checked))}
          />
        ))}
      </div>
    </fieldset>
  );
}
