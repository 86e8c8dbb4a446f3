// The texts of the respondents' pages in the language of the document. Imported first: other modules use them.

import de from "../../../service/ldp_budget_service/web/texts/survey.de.json";
import en from "../../../service/ldp_budget_service/web/texts/survey.en.json";
import ko from "../../../service/ldp_budget_service/web/texts/survey.ko.json";
import { speak } from "./texts.js";

speak({ en, ko, de }, document.documentElement.lang);
