/** The inputs of tools: attributes of declared operations, and their schemas as agents read them. */

import assert from 'node:assert/strict';
import type { TSchema } from 'typebox';
import type { ListedTool } from '../../http/mcp/call-tool.ts';
import type { AgentTool } from '../../http/mcp/tool.ts';
import type { WholeRoute } from '../../http/protocol/route.ts';
import type { Operation, Section } from '../declaration/operation.ts';
import type { Attribute, Attributes } from '../declaration/shape.ts';
import { createComponents } from '../openapi/components.ts';

/** The declared operation with this id, which takes and gives a whole body. */
export function declared(sections: readonly Section[], id: string): Operation & WholeRoute {
  const found = sections.flatMap(({ operations }) => operations).find((one) => one.id === id);
  assert(found && 'handle' in found, `there is an operation ${id}`);
  return found;
}

/** Attributes that an operation declares, by their names. */
export function attributesOf(schema: TSchema | undefined, names: readonly string[]): Attributes {
  const { properties = {} } = schema as { readonly properties?: Readonly<Record<string, TSchema>> };
  return Object.fromEntries(
    names.map((name) => {
      const one = properties[name];
      assert(one, `the operation has ${name}`);
      return [name, one as Attribute];
    }),
  );
}

export function listed(tool: AgentTool): ListedTool {
  const schema = createComponents().refer(tool.input);
  return { tool, inputSchema: { ...schema, type: 'object' } };
}
