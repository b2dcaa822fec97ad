"""The settings' fields with a line for each entry: typed, saved, and shown as they were."""

from tests.unit.dashboard.site import Site

FIELDS = {
    "name": "renamed",
    "rateLimitPerMinute": "7",
    "retentionDays": "30",
    "payloadRetentionDays": "7",
    "lenientSdks": "react-native/*\nold/*",
}


async def test_owners_are_typed_as_lines_and_shown_as_they_were(site: Site) -> None:
    await site.sign_in()
    path = f"/projects/{site.project.id}/settings"
    typed = 'file:src/checkout/* => Ann Lee\n\n  tags[team]:"a => b" =>zoe\n => eve'
    form = FIELDS | {"csrf": await site.csrf(), "owners": typed, "linkTemplate": "https://git.example/{file}"}
    assert (await site.client.post(path, data=form, allow_redirects=False)).status == 303
    [project] = site.projects.all()
    assert [(owner.match, owner.assignee) for owner in project.owners] == [
        ("file:src/checkout/*", "Ann Lee"),
        ('tags[team]:"a => b"', "zoe"),
        ("", "eve"),
    ]
    assert (project.name, project.rate_limit_per_minute) == ("renamed", 7)
    assert (project.retention_days, project.payload_retention_days) == (30, 7)
    assert project.lenient_sdks == ("react-native/*", "old/*")
    assert project.link_template == "https://git.example/{file}"
    page = await (await site.client.get(path)).text()
    assert (
        "file:src/checkout/* =&gt; Ann Lee\ntags[team]:&#34;a =&gt; b&#34; =&gt; zoe\n =&gt; eve</textarea>"
        in page
    )
    assert 'value="https://git.example/{file}"' in page
    refused = await site.client.post(path, data=form | {"owners": "type:E => zoe\ntype:( => zoe"})
    assert refused.status == 400
    assert "Entry 2: " in await refused.text()
    nameless = await site.client.post(path, data=form | {"owners": "type:E"})
    assert "Entry 1: must have 1 to 200 characters" in await nameless.text()
