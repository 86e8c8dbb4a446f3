"""Texts of a statement, by language. A page takes all of its words from here."""

from __future__ import annotations

from typing import NamedTuple


class Texts(NamedTuple):
    """The words of a statement in one language."""

    title: str
    kind: str
    summary: str
    none: str
    erased: str
    failed: str
    charged: str
    columns: tuple[str, ...]
    charged_note: str
    given_back: str
    version: str
    limits: str
    of: str
    periods: dict[str, str]
    meaning: str
    belief: str
    belief_total: str
    with_delta: str
    checked: str
    ledger: str
    made: str
    verification: str
    holds: str
    verified_head: str
    confirmation: str
    confirmed: str
    head: str
    unproved: str
    not_proved: tuple[str, ...]


TEXTS = {
    "en": Texts(
        title="Statement for {user}",
        kind="Privacy budget under local differential privacy",
        summary="Charges of this user in the ledger {ledger}: {charges}. A charge is a privacy loss that the user's reports may "
        "cause; it holds no answer.",
        none="The ledger records no charge for this user.",
        erased="This user was erased from the ledger. It keeps the sums of the charges, and no longer knows which charges "
        "were this user's, nor when the user was erased. An erased user gets no new budget.",
        failed="The verification of the ledger found problems. Do not rely on this statement.",
        charged="What was charged",
        columns=("time", "survey or mechanism", "reports", "at most lost", "policy"),
        charged_note="The loss of a charge is an upper bound, whatever else an observer knows.",
        given_back="given back: no report was sent",
        version="version",
        limits="Totals and limits",
        of="{spent} of {most}",
        periods={"lifetime": "in a lifetime", "day": "today", "week": "this week", "month": "this month"},
        meaning="What this means for one belief",
        belief="The largest single charge is ε = {epsilon}. An observer who thought a statement about one answer 50 % likely "
        "can think it at most {after} likely after that report.",
        belief_total="All charges together are at most ε = {epsilon}: at most {after} for a statement about all answers.",
        with_delta="Some charges have a δ above 0: their bound holds but for a chance of about δ, so no such figure is "
        "given for them and for the total.",
        checked="How this was checked",
        ledger="ledger",
        made="made",
        verification="verification",
        holds="every hash, sum and decision of the ledger was checked, and no problem was found",
        verified_head="head that was verified",
        confirmation="since then",
        confirmed="each hash of the journal was computed again for this statement, also those of later entries",
        head="head of the journal",
        unproved="What this does not prove",
        not_proved=(
            "That every collection of data charged this ledger: an operator can collect answers without it.",
            "That the user's device ran the agreed program: the operator of the survey publishes it for comparison.",
            "That the name above belongs to one person: the ledger stores a keyed hash of the name, and no identity.",
        ),
    ),
    "ko": Texts(
        title="{user} 님의 내역서",
        kind="로컬 차분 프라이버시의 프라이버시 예산",
        summary="원장 {ledger}에는 이 사용자의 차감이 {charges}건 기록되어 있습니다. 차감은 보고서로 생길 수 있는 프라이버시 "
        "손실의 상한이며, 응답 내용은 들어 있지 않습니다.",
        none="원장에 이 사용자의 차감 기록이 없습니다.",
        erased="이 사용자는 원장에서 지워졌습니다. 원장은 차감의 합계만 보존하며, "
        "어느 차감이 이 사용자의 것이었는지, 언제 지워졌는지 더는 알지 못합니다. 지워진 사용자는 새 예산을 받지 않습니다.",
        failed="원장 검증에서 문제가 발견되었습니다. 이 내역서를 근거로 삼지 마세요.",
        charged="차감 내역",
        columns=("시각", "설문 또는 메커니즘", "보고서 수", "손실의 상한", "정책"),
        charged_note="차감의 손실은 관찰자가 다른 무엇을 알더라도 성립하는 상한입니다.",
        given_back="반환됨: 보고서를 보내지 않음",
        version="버전",
        limits="합계와 한도",
        of="{most} 중 {spent}",
        periods={"lifetime": "평생", "day": "오늘", "week": "이번 주", "month": "이번 달"},
        meaning="하나의 믿음에 대한 의미",
        belief="가장 큰 차감 한 건은 ε = {epsilon}입니다. "
        "어떤 응답에 관한 말을 50 %로 믿던 관찰자는 그 보고서를 본 뒤에도 최대 {after}까지만 믿을 수 있습니다.",
        belief_total="모든 차감을 합하면 ε = {epsilon} 이하입니다. 모든 응답에 관한 말이라면 최대 {after}입니다.",
        with_delta="δ가 0보다 큰 차감이 있습니다. "
        "이런 차감의 상한은 약 δ의 확률을 빼고 성립하므로, 그 차감과 합계에는 이 수치를 적지 않습니다.",
        checked="확인한 방법",
        ledger="원장",
        made="작성 시각",
        verification="검증",
        holds="원장의 모든 해시, 합계, 결정을 검사했고 문제가 없었습니다",
        verified_head="검증한 헤드",
        confirmation="그 이후",
        confirmed="이 내역서를 위해 저널의 모든 해시를 다시 계산했습니다. 검증 뒤에 추가된 항목도 포함합니다",
        head="저널의 헤드",
        unproved="증명하지 않는 것",
        not_proved=(
            "모든 수집이 이 원장에 차감되었다는 것: 운영자는 원장을 거치지 않고 응답을 모을 수 있습니다.",
            "사용자의 기기가 합의된 프로그램을 실행했다는 것: 운영자는 비교할 수 있도록 프로그램을 공개합니다.",
            "위의 이름이 한 사람의 것이라는 것: 원장에는 이름의 키 해시만 있고 신원은 없습니다.",
        ),
    ),
    "de": Texts(
        title="Auskunft über {user}",
        kind="Privatsphäre-Budget unter lokaler Differential Privacy",
        summary="Belastungen dieser Person im Hauptbuch {ledger}: {charges}. Eine Belastung ist der Verlust an Privatsphäre, den "
        "ihre Berichte höchstens verursachen; sie enthält keine Antwort.",
        none="Das Hauptbuch verzeichnet keine Belastung dieser Person.",
        erased="Diese Person wurde aus dem Hauptbuch gelöscht. Es behält die Summen der Belastungen und weiß nicht mehr, welche "
        "davon zu dieser Person gehörten und wann sie gelöscht wurde. Wer gelöscht wurde, erhält kein neues Budget.",
        failed="Die Prüfung des Hauptbuchs fand Fehler. Stützen Sie sich nicht auf diese Auskunft.",
        charged="Was belastet wurde",
        columns=("Zeit", "Umfrage oder Mechanismus", "Berichte", "höchstens verloren", "Richtlinie"),
        charged_note="Der Verlust einer Belastung ist eine Obergrenze, was immer jemand sonst noch weiß.",
        given_back="zurückgegeben: kein Bericht wurde gesendet",
        version="Version",
        limits="Summen und Grenzen",
        of="{spent} von {most}",
        periods={"lifetime": "auf Lebenszeit", "day": "heute", "week": "diese Woche", "month": "diesen Monat"},
        meaning="Was das für eine Vermutung bedeutet",
        belief="Die größte einzelne Belastung ist ε = {epsilon}. Wer eine Aussage über eine Antwort vorher zu 50 % für wahr hielt, "
        "kann sie nach diesem Bericht höchstens zu {after} für wahr halten.",
        belief_total="Alle Belastungen zusammen sind höchstens ε = {epsilon}: höchstens {after} für eine Aussage über alle "
        "Antworten.",
        with_delta="Einige Belastungen haben ein δ über 0: Ihre Grenze gilt bis auf eine Wahrscheinlichkeit von etwa δ. "
        "Für sie und die Summe steht hier deshalb keine solche Zahl.",
        checked="Wie dies geprüft wurde",
        ledger="Hauptbuch",
        made="erstellt",
        verification="Prüfung",
        holds="jeder Hash, jede Summe und jede Entscheidung des Hauptbuchs wurde geprüft, ohne einen Fehler zu finden",
        verified_head="geprüfter Kopf",
        confirmation="seitdem",
        confirmed="für diese Auskunft wurde jeder Hash des Journals neu berechnet, auch der später hinzugekommenen Einträge",
        head="Kopf des Journals",
        unproved="Was dies nicht beweist",
        not_proved=(
            "Dass jede Erhebung dieses Hauptbuch belastet hat: Ein Betreiber kann Antworten ohne das Hauptbuch sammeln.",
            "Dass das Gerät das vereinbarte Programm ausgeführt hat: Der Betreiber veröffentlicht es zum Vergleich.",
            "Dass der Name oben zu einer Person gehört: Das Hauptbuch hat einen Hash des Namens mit Schlüssel und keine Identität.",
        ),
    ),
}
