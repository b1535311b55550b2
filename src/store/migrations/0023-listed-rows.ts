/** Migration 23: indexes in the order of lists, of applications and of the earlier code of reactors. */
export function listedRows(): string[] {
  return [
    `create index applications_by_creation on applications
      (tenant_id, created_at, application_id)`,
    // What is kept for more than thirty days is no call; see `runPage`.
    `create index reactor_versions on reactor_runs (tenant_id, reactor_id, created_at, run_id)
      where expires_at - created_at > 2592000000`,
  ];
}
