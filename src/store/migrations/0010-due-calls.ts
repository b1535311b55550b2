/** Migration 10: an index by which servers find the tenants whose asynchronous calls are due. */
export function dueCalls(): string[] {
  return [
    `create index reactor_runs_due_by_due_at on reactor_runs (due_at, tenant_id)
      where due_at is not null`,
  ];
}
